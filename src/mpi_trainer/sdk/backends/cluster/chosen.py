"""The part of a cluster's backend that says what a new job can choose from, and what it may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import RuntimeRef
from mpi_trainer.kube.config import Config
from mpi_trainer.sdk.backends.backend import Key, Project, QueueInfo, QuotaInfo
from mpi_trainer.sdk.backends.cluster import choices, queues, rights
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.permissions import Permission


class ClusterChoices(ABC):
    config: Config

    @abstractmethod
    def _connected(self, key: Key | None = None) -> AbstractAsyncContextManager[ApiServer]:
        """The API server; what it refuses is an error of ours."""

    @property
    def namespace(self) -> str:
        return self.config.namespace

    async def user(self) -> str:
        async with self._connected() as server:
            return await choices.user(server)

    async def runtimes(self, namespace: str) -> Sequence[Runtime]:
        async with self._connected() as server:
            return await choices.runtimes(server, namespace)

    async def runtime(self, ref: RuntimeRef, namespace: str) -> Runtime:
        async with self._connected() as server:
            return await choices.runtime(server, namespace, ref)

    async def namespaces(self) -> Sequence[str]:
        return [one.name for one in await self.projects()]

    async def projects(self) -> Sequence[Project]:
        async with self._connected() as server:
            return await choices.projects(server, self.namespace)

    async def permissions(self, namespace: str) -> Sequence[Permission]:
        async with self._connected() as server:
            return await rights.allowed_actions(server, namespace)

    async def enforces_restricted(self, namespace: str) -> bool:
        async with self._connected() as server:
            return await choices.enforces_restricted(server, namespace)

    async def volume(self, name: str, namespace: str) -> Mapping[str, Any]:
        async with self._connected() as server:
            return await choices.volume(server, name, namespace)

    async def queues(self, namespace: str) -> Sequence[QueueInfo]:
        async with self._connected() as server:
            return await queues.queues(server, namespace)

    async def quotas(self, namespace: str) -> Sequence[QuotaInfo]:
        async with self._connected() as server:
            return await choices.quotas(server, namespace)
