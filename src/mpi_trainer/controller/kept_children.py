"""Children that are watched and kept as rendered, whatever is done to them: NetworkPolicies and
PodGroups.

What is missing is created, what was changed is put right, and what is no longer wanted is deleted,
in the next pass over the job. An object is taken for the job's by its owner reference alone; the
owner reference also removes it with the job. Danger: between somebody's change and that pass the
changed object holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpi_trainer.controller.children import get_or_create
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.objects import KeptChild
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import NETWORK_POLICIES, POD_GROUPS, Resource
from mpi_trainer.render.gang.model import PlannedGang
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.store import Store

Object = dict[str, Any]
KeptStores = Mapping[Resource, Store[KeptChild]]
BY_OWNER = "owner"


def by_owner(child: KeptChild) -> Iterable[str]:
    """Index by the uid of the owner that controls it."""
    holder = child.metadata.controller()
    return () if holder is None else (holder.uid,)


def kept_store() -> Store[KeptChild]:
    return Store({BY_OWNER: by_owner})


def kept_stores(pod_groups: Iterable[Resource]) -> KeptStores:
    """`pod_groups`: those kinds of PodGroups that the cluster knows."""
    return {resource: kept_store() for resource in (NETWORK_POLICIES, *pod_groups)}


class KeptChildren:
    """Of jobs of `kind`."""

    def __init__(
        self,
        client: Client,
        writes: GuardedWrites,
        freshness: Freshness[Key, Resource],
        stores: KeptStores,
        kind: str,
    ) -> None:
        self._client = client
        self._writes = writes
        self._freshness = freshness
        self._stores = stores
        self._kind = kind

    async def keep(
        self,
        key: Key,
        owner: Meta,
        resource: Resource,
        wanted: Iterable[Object],
        fields: frozenset[str] | None = None,
    ) -> None:
        """Make the job's children of this kind those that are `wanted`. NameTaken, or Predecessor,
        where an object of somebody else has the name of one. Of its spec only `fields` are ours,
        beside those that are rendered; None: all are."""
        found = {one.metadata.name: one for one in self._stores[resource].by(BY_OWNER, owner.uid)}
        for one in wanted:
            live = found.pop(one["metadata"]["name"], None)
            if live is None:
                made, _ = await get_or_create(self._client, resource, owner, one, self._kind)
                self._freshness.wrote(key, resource, made)
            elif live.metadata.deletion_timestamp is None:
                await self._put_right(key, resource, live, _aimed(live, one["spec"], fields))
        for surplus in found.values():
            if surplus.metadata.deletion_timestamp is None:
                meta = surplus.metadata
                await self._writes.delete_child(key, resource, meta.name, meta.uid)

    async def keep_gang(self, key: Key, owner: Meta, wanted: PlannedGang | None) -> None:
        """As `keep`, for the job's PodGroup, of whichever kind; None: it has none."""
        for resource in POD_GROUPS:
            if resource in self._stores:
                own = wanted is not None and wanted.scheduler.group == resource.group
                made = (wanted.pod_group,) if wanted is not None and own else ()
                fields = wanted.scheduler.fields if wanted is not None and own else None
                await self.keep(key, owner, resource, made, fields)

    async def _put_right(self, key: Key, resource: Resource, live: KeptChild, spec: Object) -> None:
        if msgspec.json.decode(live.spec) != spec:
            meta = live.metadata
            try:
                request = _replacement(resource, meta, spec)
                await self._writes.patch_child(key, resource, request)
            except NotFound:  # The watch will show it, and the next pass makes it anew.
                self._freshness.deleted(key, resource, meta.uid, meta.namespace)


def _aimed(live: KeptChild, wanted: Object, fields: frozenset[str] | None) -> Object:
    """The spec that `live` is to have."""
    if fields is None:
        return wanted
    there: Object = msgspec.json.decode(live.spec)
    return {**{k: v for k, v in there.items() if k not in fields}, **wanted}


def _replacement(resource: Resource, meta: Meta, spec: Object) -> Request:
    """Of the whole spec, so that nothing stays that somebody added."""
    steps = (
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "replace", "path": "/spec", "value": spec},
    )
    return requests.patch(resource, meta.namespace, meta.name, steps, "json")
