"""Writes to a job's own object, of any kind. Each is guarded, and remembered as our own."""

from __future__ import annotations

import contextlib
from typing import Any

from mpi_trainer.controller.objects import Answer
from mpi_trainer.controller.write_concurrency import WriteConcurrency
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import NotFound
from mpi_trainer.kube.resources import Resource
from mpi_trainer.runtime.freshness import Freshness
from mpi_trainer.runtime.partial import Key, Meta


class GuardedWrites:
    def __init__(
        self,
        client: Client,
        resource: Resource,
        freshness: Freshness[Key, Resource],
        pace: WriteConcurrency,
    ) -> None:
        self._client = client
        self._resource = resource
        self._freshness = freshness
        self._pace = pace

    async def patch(self, key: Key, body: dict[str, Any], sub: str = "") -> str:
        """A merge patch, which carries its own precondition; the version that it made."""
        place = (self._resource, key.namespace, key.name)
        request = requests.brief(requests.patch(*place, body, "merge", sub))
        answer = await self._pace.send(lambda: self._client.call(request, Answer), key.namespace)
        self._freshness.wrote(key, self._resource, answer.metadata)
        return answer.metadata.resource_version

    async def delete(self, key: Key, meta: Meta) -> None:
        """Exactly the job that was looked at, as it was then."""
        place = (self._resource, meta.namespace, meta.name)
        with contextlib.suppress(NotFound):
            request = requests.delete(*place, meta.uid, meta.resource_version)
            await self._client.call(request, None)
        self._freshness.deleted(key, self._resource, meta.uid, meta.namespace)
