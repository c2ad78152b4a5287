"""Which counts a stored status of a TrainJob moves: what it says and the one before did not."""

from __future__ import annotations

from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.runtime.job_metrics import TrainJobMetrics


def count_transitions(
    metrics: TrainJobMetrics, job: TrainJob, framework: str, decision: TrainJobDecision
) -> None:
    """To be called once annotations and status are stored; `job` has those before them."""
    old, new = f.read(job.metadata.annotations), decision.annotations
    where = (job.namespace, framework)
    if new.start_time and not old.start_time:
        # A short job's start is written with its end.
        metrics.running.labels(*where).inc()
        born, started = job.metadata.creation_timestamp, f.to_time(new.start_time)
        if born is not None and started is not None and not job.status.conditions:
            metrics.to_running.labels(*where).observe(max((started - born).total_seconds(), 0.0))
    if new.phase == old.phase:
        return
    if new.phase == f.SUSPENDED:
        metrics.suspended.labels(*where).inc()
    elif new.phase in (f.SUCCEEDED, f.FAILED):
        (metrics.succeeded if new.phase == f.SUCCEEDED else metrics.failed).labels(*where).inc()
        started, ended = f.to_time(new.start_time), f.to_time(new.completion_time)
        if started is not None and ended is not None:
            metrics.duration.labels(*where).observe((ended - started).total_seconds())
