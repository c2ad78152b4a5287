"""Writes to a job and to its children that may be repeated, late or meet somebody else's.

Each carries a precondition (a resourceVersion or a uid) and is noted as our own, so that the job is
not looked at again before the watch has shown it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from mpi_trainer.controller.objects import Answer
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, NotFound
from mpi_trainer.kube.requests import Propagation, Request
from mpi_trainer.kube.resources import Resource
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta


class GuardedWrites:
    """Of jobs of the kind `resource`."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        freshness: Freshness[Key, Resource],
        concurrency: WriteConcurrency,
    ) -> None:
        self._client = client
        self._resource = resource
        self._freshness = freshness
        self._concurrency = concurrency

    async def patch_job(self, key: Key, body: dict[str, Any], sub: str = "") -> str:
        """A merge patch, which carries its own precondition; the version that it made."""
        target = (self._resource, key.namespace, key.name)
        request = requests.brief(requests.patch(*target, body, "merge", sub))
        answer = await self._concurrency.send(
            lambda: self._client.call(request, Answer), key.namespace
        )
        self._freshness.wrote(key, self._resource, answer.metadata)
        return answer.metadata.resource_version

    async def delete_job(self, key: Key, meta: Meta) -> None:
        """Exactly the job that was looked at, as it was then."""
        target = (self._resource, meta.namespace, meta.name)
        with contextlib.suppress(NotFound):
            request = requests.delete(*target, meta.uid, meta.resource_version)
            await self._client.call(request, None)
        self._freshness.deleted(key, self._resource, meta.uid, meta.namespace)

    async def patch_child(self, key: Key, resource: Resource, request: Request) -> None:
        answer = await self._client.call(request, Answer)
        self._freshness.wrote(key, resource, answer.metadata)

    async def delete_child(
        self,
        key: Key,
        resource: Resource,
        name: str,
        uid: str,
        propagation: Propagation = "Background",
    ) -> None:
        """The child with this uid. One that is gone, or another of its name, is no error."""
        request = requests.delete(resource, key.namespace, name, uid, propagation=propagation)
        try:
            answer = await self._client.call(request, Answer)
        except (NotFound, Conflict):
            self._freshness.deleted(key, resource, uid, key.namespace)
            return
        if answer.kind == resource.kind and answer.metadata.deletion_timestamp is not None:
            self._freshness.wrote(key, resource, answer.metadata)
        else:
            self._freshness.deleted(key, resource, uid, key.namespace)
