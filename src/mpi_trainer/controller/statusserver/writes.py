"""Reports into the job: the newest one, and not more often than every few seconds.

A program may report every step; each write is one for the API server and for everybody who watches
jobs. The first report of a job is written at once, a later one when `EVERY` has passed since the
one before; of those in between the newest counts. Guarantee: one write of a job follows the other,
and the last report is written, unless this process ends before it is due. Danger: another replica
does not know of our writes, so a job may be written by each of them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from mpi_trainer.controller.objects import Answer
from mpi_trainer.controller.statusserver.report import (
    Report,
    annotation_patch,
    is_tracked,
    status_patch,
)
from mpi_trainer.kube import requests
from mpi_trainer.kube.client import Client
from mpi_trainer.kube.errors import Conflict, KubeError
from mpi_trainer.kube.resources import TRAINJOBS
from mpi_trainer.runtime.partial import Key
from mpi_trainer.runtime.token_reviews import Busy

EVERY: Final = 5.0
MOST_JOBS: Final = 10_000
TRIES: Final = 5
"""of one write, while others change the job"""

log = logging.getLogger(__name__)


class OtherJob(Exception):
    """The job of this name is not the one that the report is for."""


class _JobReports(msgspec.Struct):
    """Of one job: when it may be written next, what is still to be, and whose turn it is: a write
    that takes long must not arrive after those that follow it."""

    due: float = 0.0
    waiting: Report | None = None
    turn: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    def busy(self, now: float) -> bool:
        return self.waiting is not None or self.due > now or self.turn.locked()


class ReportWrites:
    """`clock` in seconds; `every` is the pause between two writes of one job."""

    def __init__(
        self, client: Client, every: float = EVERY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._every = every
        self._clock = clock
        self._jobs: dict[tuple[Key, str], _JobReports] = {}
        self._later: set[asyncio.Task[None]] = set()

    async def write(self, key: Key, uid: str, report: Report) -> None:
        """Writes it, or has it written soon. KubeError where the API server refuses it, OtherJob
        where there is another of that name, Busy where too many jobs report at once."""
        known = self._job(key, uid)
        left = known.due - self._clock()
        if left <= 0 and not known.turn.locked():
            async with known.turn:
                known.due, known.waiting = self._clock() + self._every, None
                await self._write(key, uid, report)
            return
        if known.waiting is None:
            task = asyncio.create_task(self._in_time(key, uid, known, left))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        known.waiting = report

    async def close(self) -> None:
        for task in self._later:
            task.cancel()
        if self._later:
            await asyncio.wait(self._later)

    def _job(self, key: Key, uid: str) -> _JobReports:
        known = self._jobs.get((key, uid))
        if known is None:
            if len(self._jobs) >= MOST_JOBS:
                self._forget()
            known = self._jobs[key, uid] = _JobReports()
        return known

    def _forget(self) -> None:
        """Those that nothing is left to write of."""
        now = self._clock()
        kept = {k: one for k, one in self._jobs.items() if one.busy(now)}
        if len(kept) >= MOST_JOBS:
            raise Busy
        self._jobs = kept

    async def _in_time(self, key: Key, uid: str, known: _JobReports, left: float) -> None:
        await asyncio.sleep(left)
        async with known.turn:
            report, known.waiting = known.waiting, None
            if report is None:
                return
            known.due = self._clock() + self._every
            try:
                await self._write(key, uid, report)
            except (KubeError, OtherJob) as error:
                log.info("a report of %s could not be stored: %s", key, error)

    async def _write(self, key: Key, uid: str, report: Report) -> None:
        """To the job with this uid. The API server heeds no uid in a patch of a status, so the
        write names the version at which the uid was seen."""
        target = (TRAINJOBS, key.namespace, key.name)
        for left in reversed(range(TRIES)):
            seen = (await self._client.call(requests.brief(requests.get(*target)), Answer)).metadata
            if seen.uid != uid:
                raise OtherJob(f"{key} is another job by now")
            body = status_patch(report, seen.resource_version)
            patch = requests.patch(*target, body, "merge", "status")
            try:
                stored = await self._client.call(requests.brief(patch), Answer)
                break
            except Conflict:
                if not left:
                    raise
        if is_tracked(stored.metadata.annotations):
            noted = requests.patch(*target, annotation_patch(report, uid), "merge")
            await self._client.call(requests.brief(noted), Answer)
