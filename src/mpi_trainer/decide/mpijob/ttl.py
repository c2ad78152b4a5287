"""When a finished job itself is removed: `ttlSecondsAfterFinished` after its end (AC-4)."""

from __future__ import annotations

from datetime import datetime, timedelta

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus


def remaining(job: MPIJob, now: datetime) -> timedelta | None:
    """Time until the job is due for removal; zero or less when it is; None when it stays."""
    ttl = job.spec.run_policy.ttl_seconds_after_finished
    ended = _ended(job.status)
    if ttl is None or ended is None:
        return None
    return timedelta(seconds=ttl) - (now - ended)


def _ended(status: MPIJobStatus) -> datetime | None:
    """The end as written; a job that another controller failed may have a condition and no time."""
    if status.completion_time is not None:
        return status.completion_time
    ends = (x for x in status.conditions if x.type in (c.SUCCEEDED, c.FAILED))
    return next((x.last_transition_time for x in ends if x.status == c.TRUE), None)
