"""`activeDeadlineSeconds`: the longest a job may be active, over all its attempts.

The clock starts with the job, not with its launcher, so a job whose workers never come does not
wait for ever. Suspension stops it: a resumed job starts anew.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from mpi_trainer.api.kinds.mpijob import MPIJob

# The field is a 64-bit number; more than this is more than a timedelta may hold, and for ever.
A_CENTURY = 100 * 365 * 24 * 3600


def remaining(job: MPIJob, started: datetime, now: datetime) -> timedelta | None:
    return remaining_seconds(job.spec.run_policy.active_deadline_seconds, started, now)


def remaining_seconds(
    seconds: int | None, since: datetime | None, now: datetime
) -> timedelta | None:
    """What is left of so many seconds since then; None where there is no limit, or no start."""
    if seconds is None or since is None:
        return None
    return timedelta(seconds=min(seconds, A_CENTURY)) - (now - since)


def message(job: MPIJob) -> str:
    seconds = job.spec.run_policy.active_deadline_seconds
    return (
        f"The job was active longer than {seconds} s (runPolicy.activeDeadlineSeconds); "
        "raise the limit, or find out what takes so long."
    )


def train_message(seconds: int) -> str:
    return (
        f"TrainJob exceeded its active deadline of {seconds} s (activeDeadlineSeconds); "
        "raise it in a new job, or find out what takes so long."
    )
