"""One job with all that is known of it, again whenever something of it changes.

Its object, its pods and its events are watched, as far as the caller may; what those watches do not
show, such as progress in a log, is looked for from time to time. With every look the caller's
rights are asked for anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, Final

from mpi_trainer.kube.errors import KubeError, NotFound
from mpi_trainer.kube.resources import EVENTS, PODS
from mpi_trainer.sdk.backends.backend import JobDetails, Key
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.details import details
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find
from mpi_trainer.sdk.backends.cluster.watches import list_and_watch

GATHER: Final = 0.5
"""seconds for changes that come together: a pod that starts makes several"""
LOOK: Final = 10.0
SLOW_LOOK: Final = 60.0


async def follow(server: ApiServer, key: Key) -> AsyncGenerator[JobDetails, None]:
    """Ends when the job is gone; another one of its name is not this job."""
    found = first = await find(server, key)
    changed = asyncio.Event()
    watches = [
        asyncio.create_task(_note(changes, changed)) for changes in _watches(server, key, first)
    ]
    try:
        while found.uid == first.uid:
            changed.clear()
            seen = await details(server, key, found)
            yield seen
            with suppress(TimeoutError):
                async with asyncio.timeout(SLOW_LOOK if seen.job.finished else LOOK):
                    await changed.wait()
                    await asyncio.sleep(GATHER)
            try:
                found = await find(server, key)
            except NotFound:
                return
    finally:
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)


def _watches(server: ApiServer, key: Key, job: FoundJob) -> tuple[AsyncGenerator[Any, None], ...]:
    streams, outages, space = server.streams, server.outages, key.namespace
    about = f"involvedObject.uid={job.uid}"
    return (
        server.watches.follow(job.kind.resource, key),
        list_and_watch(streams, outages, PODS, space, labels=job.kind.selector(key)),
        list_and_watch(streams, outages, EVENTS, space, fields=about),
    )


async def _note(changes: AsyncGenerator[Any, None], changed: asyncio.Event) -> None:
    """What may not be watched is looked for instead."""
    with suppress(KubeError):
        async with aclosing(changes):
            async for _ in changes:
                changed.set()
