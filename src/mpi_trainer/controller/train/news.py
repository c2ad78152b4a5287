"""What is new of a job: told in time, but not word by word.

JobSet changes its counts of child Jobs in bursts, and a short job runs and ends within seconds. A
change of counts alone waits until the last write was a moment ago; that a job runs waits as well
where the controller has many other writes to send, which it would only delay. Whatever else changes
takes both along. Guarantee: nothing waits longer than twenty seconds, and no end of a job waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.decide import findings as f
from mpi_trainer.decide.trainseen import JobSetSeen, Step

COUNTS_EVERY = timedelta(seconds=2)
FIRST_COUNTS = timedelta(seconds=10)
"""by then a job most often runs, which takes them along"""
COUNTS_WITHIN = timedelta(seconds=20)
RUNS_WITHIN = timedelta(seconds=10)
WRITES = 3
"""that it takes to tell that a job runs: findings, status, event"""


class News:
    """Of one job: when it was told of last, since when it runs untold, and its JobSet."""

    def __init__(self) -> None:
        self._told: datetime | None = None
        self._runs: datetime | None = None
        self._set: JobSetSeen | None = None

    def dated(self, job_set: JobSetSeen | None, now: datetime) -> JobSetSeen | None:
        """The JobSet, with the time since when it was seen to be as it is."""
        if job_set is None:
            return None
        if self._set is None or replace(self._set, since=None) != job_set:
            self._set = replace(job_set, since=now)
        return self._set

    def told(self, now: datetime) -> None:
        self._told, self._runs = now, None

    def can_wait(
        self, job: TrainJob, step: Step, now: datetime, busy: timedelta
    ) -> timedelta | None:
        """How long the step need not be stored yet; None: now. `busy` is how long the writes of
        late take."""
        old, new = f.read(job.metadata.annotations), step.findings
        counts = job.status.jobs_status
        if step.acts or replace(step.status, jobs_status=counts) != job.status:
            return None
        if _runs_now(old, new):
            patience = min(WRITES * busy, RUNS_WITHIN)
            self._runs = self._runs or now
            return _rest(self._runs, now, patience)
        if new != old or step.events or step.status == job.status:
            return None
        pause = COUNTS_EVERY if counts else FIRST_COUNTS
        patience = min(pause + WRITES * busy, COUNTS_WITHIN)
        self._told = self._told or now
        return _rest(self._told, now, patience)


def _runs_now(old: f.Findings, new: f.Findings) -> bool:
    """Whether that is all the difference."""
    before = replace(new, phase=old.phase, start_time=old.start_time, cause=old.cause)
    return new.phase == f.RUNNING and old.phase in ("", f.PENDING) and before == old


def _rest(since: datetime, now: datetime, patience: timedelta) -> timedelta | None:
    """What is left to wait; a clock that was set back must not add to it."""
    left = patience - (now - since)
    return left if timedelta() < left <= patience else None
