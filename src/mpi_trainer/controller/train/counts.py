"""How many child Jobs are active, ready or done: told in time, but not one by one.

JobSet changes these numbers in bursts. A change of nothing else waits until the
last write was a moment ago; whatever else changes takes the numbers along.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from mpi_trainer.api.trainjob import TrainJob
from mpi_trainer.decide import findings
from mpi_trainer.decide.trainseen import Step

EVERY = timedelta(seconds=2)


class Counts:
    """Remembers when each job's status was written last."""

    def __init__(self) -> None:
        self._written: dict[str, datetime] = {}

    def wrote(self, job: TrainJob, now: datetime) -> None:
        self._written[job.metadata.uid] = now

    def forget(self, uid: str) -> None:
        self._written.pop(uid, None)

    def can_wait(self, job: TrainJob, step: Step, now: datetime) -> timedelta | None:
        """How long the step's status need not be written yet; None: write it now."""
        last = self._written.get(job.metadata.uid)
        # A clock that was set back must not hold a write up for as long as that.
        if last is None or not timedelta() <= now - last < EVERY or not _counts_alone(job, step):
            return None
        return EVERY - (now - last)


def _counts_alone(job: TrainJob, step: Step) -> bool:
    if step.acts or step.events:
        return False
    if findings.changes(findings.read(job.metadata.annotations), step.findings):
        return False
    old, new = job.status, step.status
    return new != old and replace(new, jobs_status=old.jobs_status) == old
