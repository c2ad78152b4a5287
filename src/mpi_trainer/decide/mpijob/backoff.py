"""How often a job is tried, and how long it rests between two attempts.

One budget for everything: launcher and worker failures alike count against `backoffLimit`
(CTL-11). The default is a batch Job's, as upstream leaves it to that Job.
"""

from __future__ import annotations

from datetime import timedelta

from mpi_trainer.api.kinds.mpijob import MPIJob

DEFAULT_LIMIT = 6
FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(minutes=1)


def limit(job: MPIJob) -> int:
    chosen = job.spec.run_policy.backoff_limit
    return DEFAULT_LIMIT if chosen is None else chosen


def exhausted(job: MPIJob, failures: int) -> bool:
    return failures > limit(job)


def delay(failures: int) -> timedelta:
    """Doubles with every failure: 1 s, 2 s, 4 s … at most a minute."""
    doublings = min(max(failures - 1, 0), 16)
    return min(FIRST_DELAY * (1 << doublings), LONGEST_DELAY)
