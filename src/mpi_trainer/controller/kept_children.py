"""Children that are watched and kept as rendered, whatever is done to them: NetworkPolicies and
PodGroups.

What is missing is created, what was changed is put right, and what is no longer wanted is deleted,
in the next pass over the job. An object is taken for the job's by its owner reference alone, within
the job's namespace: a uid that a stranger writes elsewhere proves nothing. The owner reference also
removes it with the job. Danger: between somebody's change and that pass the changed object holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.controller.children import OWNERS, Predecessor, get_or_create
from mpi_trainer.controller.guarded_writes import GuardedWrites
from mpi_trainer.controller.objects import KeptChild
from mpi_trainer.controller.stored_pods import kept_metadata
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.requests import Request
from mpi_trainer.kube.resources import NETWORK_POLICIES, POD_GROUPS, Resource
from mpi_trainer.render.gang.model import PlannedGang
from mpi_trainer.render.names import kept_names
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta
from mpi_trainer.runtime.store import Store

Object = dict[str, Any]
KeptStores = Mapping[Resource, Store[KeptChild]]
BY_OWNER = "owner"


def by_owner(child: KeptChild) -> Iterable[str]:
    """Index by `namespace/uid` of the owner that controls it."""
    holder = child.metadata.controller()
    return () if holder is None else (f"{child.metadata.namespace}/{holder.uid}",)


def kept_store() -> Store[KeptChild]:
    return Store({BY_OWNER: by_owner})


def kept_stores(pod_groups: Iterable[Resource]) -> KeptStores:
    """`pod_groups`: those kinds of PodGroups that the cluster knows."""
    return {resource: kept_store() for resource in (NETWORK_POLICIES, *pod_groups)}


def kept_child(found: KeptChild) -> KeptChild:
    """What the store holds: a copy, as what was decoded is a view of the page that it came with.
    Of a spec over `bounds.SPEC_BYTES` nothing: it is not as rendered."""
    bare = msgspec.structs.replace(found.metadata, labels={}, annotations={}, finalizers=())
    fits = memoryview(found.spec).nbytes <= bounds.SPEC_BYTES
    return KeptChild(
        metadata=kept_metadata(bare), spec=found.spec.copy() if fits else msgspec.Raw(b"{}")
    )


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
        found = {one.metadata.name: one for one in self._own(resource, owner)}
        going: list[str] = []
        for one in wanted:
            live = found.pop(one["metadata"]["name"], None)
            if live is None:
                made, new = await get_or_create(self._client, resource, owner, one, self._kind)
                self._freshness.wrote(key, resource, made)
                if not new:
                    unseen = _shown(resource, made, one, whole=fields is None)
                    await self._writes.patch_child(key, resource, unseen)
            elif live.metadata.deletion_timestamp is not None:
                going.append(f"{resource.kind} {live.metadata.name} is still being deleted")
            else:
                await self._put_right(key, resource, live, _aimed(live, one["spec"], fields))
        made_by_us = kept_names(owner.name)
        for surplus in found.values():
            meta = surplus.metadata
            if meta.deletion_timestamp is None and meta.name in made_by_us:
                await self._writes.delete_child(key, resource, meta.name, meta.uid)
        if going:
            raise Predecessor(going[0])

    async def keep_all(
        self,
        key: Key,
        owner: Meta,
        policies: Iterable[Object] | None,
        gang: PlannedGang | None,
    ) -> None:
        """As `keep`; `policies` None: as they are."""
        if policies is not None:
            await self.keep(key, owner, NETWORK_POLICIES, policies)
        await self.keep_gang(key, owner, gang)

    async def keep_gang(self, key: Key, owner: Meta, wanted: PlannedGang | None) -> None:
        """As `keep`, for the job's PodGroup, of whichever kind; None: it has none."""
        for resource in POD_GROUPS:
            if resource in self._stores:
                own = wanted is not None and wanted.scheduler.group == resource.group
                made = (wanted.pod_group,) if wanted is not None and own else ()
                fields = wanted.scheduler.fields if wanted is not None and own else None
                await self.keep(key, owner, resource, made, fields)

    def _own(self, resource: Resource, owner: Meta) -> Iterable[KeptChild]:
        """By kind, group and uid of the owner, in its namespace."""
        for one in self._stores[resource].by(BY_OWNER, f"{owner.namespace}/{owner.uid}"):
            holder = one.metadata.controller()
            if holder is not None and holder.of(OWNERS[self._kind]):
                yield one

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
    """Of the whole spec, so that nothing stays that somebody added; also where there is none."""
    return _patch(resource, meta, {"op": "add", "path": "/spec", "value": spec})


def _shown(resource: Resource, meta: Meta, wanted: Object, *, whole: bool) -> Request:
    """For one that is there and that the watch does not show, as somebody took its labels away, or
    as it has just been made. Its spec is not known here: it is replaced where it is ours as a
    whole; of others the watch will tell."""
    labels = {**meta.labels, **wanted["metadata"]["labels"]}
    steps: list[Object] = [{"op": "add", "path": "/metadata/labels", "value": labels}]
    if whole:
        steps.append({"op": "add", "path": "/spec", "value": wanted["spec"]})
    return _patch(resource, meta, *steps)


def _patch(resource: Resource, meta: Meta, *steps: Object) -> Request:
    """Of exactly the object with this uid."""
    test: Object = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
    return requests.patch(resource, meta.namespace, meta.name, (test, *steps), "json")
