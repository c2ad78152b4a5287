"""What this machine tells of jobs while somebody looks. Directories are looked at often: there is
nobody who would tell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

from mpi_trainer.api.kinds.mpijob import KIND as MPIJOB
from mpi_trainer.api.kinds.trainjob import KIND as TRAINJOB
from mpi_trainer.sdk.backends.backend import JobDetails, JobSummary, Key
from mpi_trainer.sdk.backends.job_facts import unversioned
from mpi_trainer.sdk.backends.live import JobsNow, LiveChange, LiveNews
from mpi_trainer.sdk.backends.local.observed import local_errors, summaries
from mpi_trainer.sdk.errors import JobNotFound

LOOK_SECONDS: Final = 0.5


class LocalLive:
    """Whoever has this machine's jobs may see all of them."""

    prompt = False

    def __init__(self, look: Callable[[Key], JobDetails], kind: str = "") -> None:
        self._look = look
        self._kind = kind

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self._kind,) if self._kind else (MPIJOB, TRAINJOB)

    async def jobs(
        self, kind: str, namespace: str = "", since: str = ""
    ) -> AsyncGenerator[LiveNews, None]:
        """All jobs first, whatever `since` says: looking at them costs no more."""
        known: Mapping[Key, JobSummary] | None = None
        while True:
            now = await asyncio.to_thread(_now, kind, namespace)
            if known is None:
                yield JobsNow(tuple(now.values()), str(time.time_ns() // 1_000_000))
            else:
                for change in _changes(known, now):
                    yield change
            known = now
            await asyncio.sleep(LOOK_SECONDS)

    async def details(self, key: Key) -> AsyncGenerator[JobDetails, None]:
        first = found = await asyncio.to_thread(self._look, key)
        while found.job.uid == first.job.uid:
            yield found
            await asyncio.sleep(LOOK_SECONDS)
            try:
                found = await asyncio.to_thread(self._look, key)
            except JobNotFound:
                return

    async def may_watch(self, kind: str, namespace: str = "") -> bool:
        return True

    async def may_list(self, kind: str, namespace: str = "") -> bool:
        return True

    async def may_read_logs(self, namespace: str) -> bool:
        return True


def _now(kind: str, namespace: str) -> Mapping[Key, JobSummary]:
    with local_errors():
        return {job.key: job for job in summaries(namespace or None) if job.kind == kind}


def _changes(known: Mapping[Key, JobSummary], now: Mapping[Key, JobSummary]) -> list[LiveChange]:
    gone = [
        LiveChange(job, deleted=True)
        for key, job in known.items()
        if key not in now or now[key].uid != job.uid
    ]
    fresh = (
        job
        for key, job in now.items()
        if key not in known or unversioned(known[key]) != unversioned(job)
    )
    return [*gone, *map(LiveChange, fresh)]
