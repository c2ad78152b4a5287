"""What is new of a job: told in time, but not word by word.

JobSet changes its counts of child Jobs in bursts, and a short job runs and ends within seconds. A
change of counts alone waits until the last write was a moment ago; that a job runs waits as well
where the controller has many other writes to send, which it would only delay. Whatever else changes
takes both along. Guarantee: nothing waits longer than `LONGEST`, and no end of a job waits at all.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.decide import findings as f
from mpi_trainer.decide.trainseen import Step

COUNTS_EVERY = timedelta(seconds=2)
LONGEST = timedelta(seconds=10)
_BEFORE_IT_RUNS = ("", f.PENDING)


class News:
    """Remembers since when each job has had nothing told, or something to tell."""

    def __init__(self) -> None:
        self._since: dict[str, datetime] = {}

    def told(self, job: TrainJob, now: datetime) -> None:
        self._since[job.metadata.uid] = now

    def forget(self, uid: str) -> None:
        self._since.pop(uid, None)

    def can_wait(
        self, job: TrainJob, step: Step, now: datetime, busy: timedelta
    ) -> timedelta | None:
        """How long the step need not be stored yet; None: now. `busy`: what each write costs of
        late."""
        patience = _patience(job, step, busy)
        if patience is None:
            return None
        since = self._since.setdefault(job.metadata.uid, now)
        # A clock that was set back must not hold a write up for as long as that.
        if not timedelta() <= now - since < patience:
            return None
        return patience - (now - since)


def _patience(job: TrainJob, step: Step, busy: timedelta) -> timedelta | None:
    """How long after the last word this one may come; None: it says something that may not wait,
    or nothing."""
    old, new = f.read(job.metadata.annotations), step.findings
    counts = job.status.jobs_status
    if step.acts or replace(step.status, jobs_status=counts) != job.status:
        return None
    if new == old and not step.events:
        return min(COUNTS_EVERY + busy, LONGEST) if step.status != job.status else None
    as_before = replace(new, phase=old.phase, start_time=old.start_time, cause=old.cause)
    if new.phase == f.RUNNING and old.phase in _BEFORE_IT_RUNS and as_before == old:
        return min(busy, LONGEST)
    return None
