"""All jobs of a namespace, or of all, and every change of them: one watch for each kind.

A kind that this cluster does not serve, or that the caller may not watch, is passed over as long as
another one is. Guarantee: a watch that breaks is listed again, and what changed meanwhile is told
then; a job that came and went meanwhile is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from mpi_trainer.kube import lists, requests
from mpi_trainer.kube.errors import Forbidden, Gone, KubeError, NotFound
from mpi_trainer.kube.watch import Bookmark, Deleted, Unreadable, watch
from mpi_trainer.sdk.backends.backend import JobChange, JobSummary, Key
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.cluster.observed import view_summary

_PASSED_OVER: Final = (NotFound, Forbidden)
_WATCH_SECONDS: Final = 600
_MOST_WAITING: Final = 1000


async def changes(server: ApiServer, namespace: str) -> AsyncGenerator[JobChange, None]:
    found: asyncio.Queue[JobChange] = asyncio.Queue(maxsize=_MOST_WAITING)
    watches = [
        asyncio.create_task(_Watch(server, kind, namespace, found).run()) for kind in server.served
    ]
    try:
        while True:
            coming = asyncio.ensure_future(found.get())
            running = {task for task in watches if not task.done()}
            await asyncio.wait({coming, *running}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                _raise_failed(watches)
                continue
            yield coming.result()
    finally:
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


def _raise_failed(watches: list[asyncio.Task[None]]) -> None:
    """Raises what ended a watch, unless it is a kind that can be passed over."""
    failed = [task.exception() for task in watches if task.done()]
    for error in failed:
        if error is not None and (len(failed) == len(watches) or not _passed_over(error)):
            raise error


def _passed_over(error: BaseException) -> bool:
    return isinstance(error, _PASSED_OVER)


class _Watch:
    """The jobs of one kind."""

    def __init__(
        self, server: ApiServer, kind: Kind, namespace: str, found: asyncio.Queue[JobChange]
    ) -> None:
        self._server = server
        self._kind = kind
        self._namespace = namespace
        self._found = found
        self._known: dict[Key, JobSummary] = {}
        self._version = ""

    async def run(self) -> None:
        tried = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                    self._server.outages.over()
                    tried = 0
                await self._watch()
            except Gone:
                self._version = ""
            except KubeError as error:
                self._version = ""
                await self._server.outages.endure(error, tried)
                tried += 1

    async def _list(self) -> None:
        page = await lists.list_all(
            self._server.client, self._kind.resource, dict[str, Any], namespace=self._namespace
        )
        now = {job.key: job for job in (view_summary(self._kind.view(item)) for item in page.items)}
        for key in self._known.keys() - now.keys():
            await self._tell(self._known[key], deleted=True)
        for job in now.values():
            await self._tell(job)
        self._version = page.resource_version

    async def _watch(self) -> None:
        request = requests.watch(
            self._kind.resource,
            self._namespace,
            resource_version=self._version,
            seconds=_WATCH_SECONDS,
        )
        async with aclosing(watch(self._server.streams, request, dict[str, Any])) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    self._version = event.resource_version
                elif isinstance(event, Unreadable):
                    self._version = event.metadata.resource_version
                else:
                    self._version = event.object["metadata"]["resourceVersion"]
                    job = view_summary(self._kind.view(event.object))
                    await self._tell(job, deleted=isinstance(event, Deleted))

    async def _tell(self, job: JobSummary, *, deleted: bool = False) -> None:
        """What a list would not show is no change."""
        if deleted:
            self._known.pop(job.key, None)
        elif self._known.get(job.key) == job:
            return
        else:
            self._known[job.key] = job
        await self._found.put(JobChange(job, deleted))
