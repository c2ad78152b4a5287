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
    """Remembers when each job was told of last, since when it runs untold, and its JobSet."""

    def __init__(self) -> None:
        self._told: dict[str, datetime] = {}
        self._runs: dict[str, datetime] = {}
        self._sets: dict[str, JobSetSeen] = {}

    def dated(self, uid: str, job_set: JobSetSeen | None, now: datetime) -> JobSetSeen | None:
        """The JobSet, with the time since when it was seen to be as it is."""
        if job_set is None:
            return None
        before = self._sets.get(uid)
        if before is None or replace(before, since=None) != job_set:
            before = self._sets[uid] = replace(job_set, since=now)
        return before

    def told(self, job: TrainJob, now: datetime) -> None:
        self._told[job.metadata.uid] = now
        self._runs.pop(job.metadata.uid, None)

    def forget(self, uid: str) -> None:
        self._told.pop(uid, None)
        self._runs.pop(uid, None)
        self._sets.pop(uid, None)

    def can_wait(
        self, job: TrainJob, step: Step, now: datetime, busy: timedelta
    ) -> timedelta | None:
        """How long the step need not be stored yet; None: now. `busy` is how long the writes of
        late take."""
        old, new = f.read(job.metadata.annotations), step.findings
        uid, counts = job.metadata.uid, job.status.jobs_status
        if step.acts or replace(step.status, jobs_status=counts) != job.status:
            return None
        if _runs_now(old, new):
            patience = min(WRITES * busy, RUNS_WITHIN)
            return _rest(self._runs.setdefault(uid, now), now, patience)
        if new != old or step.events or step.status == job.status:
            return None
        pause = COUNTS_EVERY if counts else FIRST_COUNTS
        patience = min(pause + WRITES * busy, COUNTS_WITHIN)
        return _rest(self._told.setdefault(uid, now), now, patience)


def _runs_now(old: f.Findings, new: f.Findings) -> bool:
    """Whether that is all the difference."""
    before = replace(new, phase=old.phase, start_time=old.start_time, cause=old.cause)
    return new.phase == f.RUNNING and old.phase in ("", f.PENDING) and before == old


def _rest(since: datetime, now: datetime, patience: timedelta) -> timedelta | None:
    """What is left to wait; a clock that was set back must not add to it."""
    left = patience - (now - since)
    return left if timedelta() < left <= patience else None
