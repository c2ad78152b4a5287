"""All jobs of a namespace, or of all, and every change of them: one watch for each kind.

A kind that this cluster does not serve, or that the caller may not watch, is passed over as long as
another one is. Guarantee: a watch that breaks is listed again, and what changed meanwhile is told
then; a job that came and went meanwhile is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from mpi_trainer.kube import lists
from mpi_trainer.kube.errors import Forbidden, NotFound
from mpi_trainer.kube.watch import Deleted
from mpi_trainer.sdk.backends.backend import JobChange, JobSummary, Key
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.cluster.observed import view_summary
from mpi_trainer.sdk.backends.cluster.watches import list_and_watch
from mpi_trainer.sdk.backends.job_facts import unversioned

_PASSED_OVER: Final = (NotFound, Forbidden)
_MOST_WAITING: Final = 1000


async def changes(server: ApiServer, namespace: str) -> AsyncGenerator[JobChange, None]:
    found: asyncio.Queue[JobChange] = asyncio.Queue(maxsize=_MOST_WAITING)
    watches = [
        asyncio.create_task(_watch(server, kind, namespace, found)) for kind in server.served
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


async def _watch(
    server: ApiServer, kind: Kind, namespace: str, found: asyncio.Queue[JobChange]
) -> None:
    """The jobs of one kind. What a list would not show is no change."""
    known: dict[Key, JobSummary] = {}
    watched = list_and_watch(server.streams, server.outages, kind.resource, namespace)
    async with aclosing(watched):
        async for change in watched:
            if isinstance(change, lists.Page):
                jobs = [view_summary(kind.view(item)) for item in change.items]
                for key in known.keys() - {job.key for job in jobs}:
                    await found.put(JobChange(known.pop(key), deleted=True))
            else:
                jobs = [view_summary(kind.view(change.object))]
            for job in jobs:
                if isinstance(change, Deleted):
                    known.pop(job.key, None)
                    await found.put(JobChange(job, deleted=True))
                elif known.get(job.key) != (shown := unversioned(job)):
                    known[job.key] = shown
                    await found.put(JobChange(job))
