"""What a cluster tells of jobs while somebody looks, with the caller's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing

from mpi_trainer.kube.resources import PODS
from mpi_trainer.sdk.backends.backend import JobDetails, Key
from mpi_trainer.sdk.backends.cluster import live_details, live_jobs
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.live import LiveNews

Connected = Callable[[Key | None], AbstractAsyncContextManager[ApiServer]]


class ClusterLive:
    prompt = True

    def __init__(self, connected: Connected, kinds: tuple[Kind, ...]) -> None:
        self._connected = connected
        self._kinds = {kind.resource.kind: kind for kind in kinds}

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self._kinds)

    async def jobs(
        self, kind: str, namespace: str = "", since: str = ""
    ) -> AsyncGenerator[LiveNews, None]:
        async with (
            self._connected(None) as server,
            aclosing(live_jobs.follow(server, self._kinds[kind], namespace, since)) as news,
        ):
            async for each in news:
                yield each

    async def details(self, key: Key) -> AsyncGenerator[JobDetails, None]:
        async with (
            self._connected(key) as server,
            aclosing(live_details.follow(server, key)) as states,
        ):
            async for each in states:
                yield each

    async def may_watch(self, kind: str, namespace: str = "") -> bool:
        resource = self._kinds[kind].resource
        async with self._connected(None) as server:
            asked = (
                live_jobs.allowed(server, resource, verb, namespace) for verb in ("list", "watch")
            )
            return all(await asyncio.gather(*asked))

    async def may_list(self, kind: str, namespace: str = "") -> bool:
        async with self._connected(None) as server:
            return await live_jobs.allowed(server, self._kinds[kind].resource, "list", namespace)

    async def may_read_logs(self, namespace: str) -> bool:
        async with self._connected(None) as server:
            return await live_jobs.allowed(server, PODS, "get", namespace, "log")
