"""Which counts a stored status moves (CTL-12): what it says and the one before it did not."""

from __future__ import annotations

from mpi_trainer.api.kinds import conditions as c
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus
from mpi_trainer.layout.hosts import launcher_name
from mpi_trainer.runtime.job_metrics import MPIJobMetrics


def count_transitions(metrics: MPIJobMetrics, job: MPIJob, new: MPIJobStatus) -> None:
    """To be called once the status is stored. `job` has the one before it."""
    old, where = job.status, job.namespace
    if _begins(old, new, c.CREATED):
        metrics.created(where)
    if _begins(old, new, c.RUNNING):
        metrics.launcher(where, launcher_name(job.name))
        seconds = None if _was_held_up(old) else _since_creation(job, new)
        if seconds is not None:
            metrics.running(where, seconds)
    if _begins(old, new, c.RESTARTING):
        metrics.restarted(where)
    if _begins(old, new, c.SUCCEEDED):
        metrics.succeeded(where, _lasted(new))
    if _begins(old, new, c.FAILED):
        metrics.failed(where, _lasted(new))


def _begins(old: MPIJobStatus, new: MPIJobStatus, kind: str) -> bool:
    return c.holds(new.conditions, kind) and not c.holds(old.conditions, kind)


def _was_held_up(old: MPIJobStatus) -> bool:
    """Suspended or tried before: the time to running is not the cluster's alone."""
    kinds = (c.SUSPENDED, c.RESTARTING)
    return any(c.find(old.conditions, kind) is not None for kind in kinds)


def _since_creation(job: MPIJob, new: MPIJobStatus) -> float | None:
    running, born = c.find(new.conditions, c.RUNNING), job.metadata.creation_timestamp
    if running is None or running.last_transition_time is None or born is None:
        return None
    return max((running.last_transition_time - born).total_seconds(), 0.0)


def _lasted(new: MPIJobStatus) -> float | None:
    if new.start_time is None or new.completion_time is None:
        return None
    return (new.completion_time - new.start_time).total_seconds()
