"""What happens to a job, as it happens, whatever backend runs it.

Everything follows `Backend.watch`, which ends when the job has ended or is gone, so no wait here
outlives its job. Progress changes without a change of status, so it is looked for beside.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import datetime

from mpi_trainer.sdk.backends.backend import Backend, EventInfo, JobDetails, JobView, Key
from mpi_trainer.sdk.errors import JobNotFound, JobTimeout
from mpi_trainer.sdk.job.state import JobState, details_state, job_state

LOOK_SECONDS = 1.0

Show = Callable[[JobState], None]


async def until_finished(
    backend: Backend, key: Key, seconds: float | None, show: Show | None
) -> JobState:
    """The last state of the job, however it ended; JobTimeout or JobNotFound otherwise."""
    import asyncio

    last: JobState | None = None
    try:
        async with asyncio.timeout(seconds) as limit:
            async with aclosing(watched_states(backend, key, looking=show is not None)) as seen:
                async for last in seen:
                    if show is not None:
                        show(last)
    except TimeoutError as error:
        if not limit.expired():
            raise
        now = f"it is {last.state}" if last else "nothing was heard of it"
        raise JobTimeout(
            f"job {key} has not ended within {seconds:g} seconds; {now}",
            "It keeps running: wait again, or stop it with delete().",
        ) from error
    if last is None or not last.finished:
        raise job_gone(key)
    details = await _details(backend, key)
    if details is not None and _ended_by_deletion(details.job):
        raise job_gone(key)
    return details_state(details) if details else last


def _ended_by_deletion(job: JobView) -> bool:
    """Whether the end that is seen is only how the deletion of a running job looks meanwhile."""
    asked, ended = job.times.deleted, job.times.completed
    return asked is not None and (ended is None or ended >= asked)


async def watched_states(
    backend: Backend, key: Key, *, looking: bool
) -> AsyncGenerator[JobState, None]:
    """A state for every change of status; with `looking`, for every change of progress too."""
    import asyncio

    changes = backend.watch(key)
    change = asyncio.ensure_future(anext(changes, None))
    last: JobState | None = None
    try:
        while True:
            done, _ = await asyncio.wait({change}, timeout=LOOK_SECONDS if looking else None)
            job = change.result() if done else None
            if done:
                if job is None:
                    return
                change = asyncio.ensure_future(anext(changes, None))
            details = await _details(backend, key) if looking else None
            before, last = (
                last,
                details_state(details) if details else job_state(job) if job else last,
            )
            if last is not None and last != before:
                yield last
    finally:
        change.cancel()
        await asyncio.gather(change, return_exceptions=True)
        await changes.aclose()


async def job_events(backend: Backend, key: Key) -> AsyncIterator[EventInfo]:
    """Every event of the job, old ones first, until it has ended."""
    known: set[tuple[datetime, str, str]] = set()
    details = await backend.details(key)
    for event in _new(details, known):
        yield event
    async for _ in backend.watch(key):
        found = await _details(backend, key)
        for event in _new(found, known) if found else ():
            yield event


def _new(details: JobDetails, known: set[tuple[datetime, str, str]]) -> list[EventInfo]:
    fresh = []
    for event in details.events:
        mark = (event.time, event.reason, event.message)
        if mark not in known:
            known.add(mark)
            fresh.append(event)
    return fresh


async def _details(backend: Backend, key: Key) -> JobDetails | None:
    """None where the job is gone: whoever watches it will hear that too."""
    try:
        return await backend.details(key)
    except JobNotFound:
        return None


def job_gone(key: Key) -> JobNotFound:
    return JobNotFound(f"job {key} was deleted before it ended", "Create it again to run it.")
