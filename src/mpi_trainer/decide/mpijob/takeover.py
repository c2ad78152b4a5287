"""Pods that another controller made, which this one has replaced: what becomes of them.

A launcher of its own leads them as before, to its end, and nothing is changed under it. Without
one they are of no use: our launcher finds neither its sshd nor its keys there. Then the attempt
begins anew, and costs nothing of the budget.
"""

from __future__ import annotations

from datetime import datetime

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import WORKER, MPIJob
from mpi_trainer.decide.observed import Observed, ObservedPod, Record


def needs_new_attempt(job: MPIJob, observed: Observed) -> bool:
    """Whether there are pods of another's that nobody leads, or not all that its launcher needs."""
    if not any(p.foreign for p in observed.pods):
        return False
    launcher = observed.launcher()
    if launcher is None or not launcher.foreign:
        return True
    return not c.holds(job.status.conditions, c.RUNNING) and bool(missing_workers(job, observed))


def missing_workers(job: MPIJob, observed: Observed) -> tuple[int, ...]:
    present = {p.index for p in observed.workers}
    return tuple(i for i in range(job.workers) if i not in present)


def workers_expected_by(job: MPIJob, launcher: ObservedPod) -> int:
    """How many workers a launcher was made for; another's does not say, but its status does."""
    if not launcher.foreign:
        return launcher.workers or 0
    counted = job.status.replica_statuses.get(WORKER)
    return counted.active if counted is not None else 0


def next_attempt(record: Record, now: datetime) -> Record:
    return Record(attempt=record.attempt + 1, failures=record.failures, retry_at=now)
