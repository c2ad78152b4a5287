"""What is counted of TrainJobs (CTL-12)."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from mpi_trainer.api.kinds.meta import ObjectMeta
from mpi_trainer.api.kinds.trainjob import TrainJob, TrainJobStatus
from mpi_trainer.controller.trainjob import transitions
from mpi_trainer.decide.trainjob import status_annotations as f
from mpi_trainer.decide.trainjob.decision import TrainJobDecision
from mpi_trainer.runtime.job_metrics import TrainJobMetrics

BORN = datetime(2026, 11, 16, 12, tzinfo=UTC)
START = "2026-11-16T12:00:07Z"
RUNS = f.StatusAnnotations(phase=f.RUNNING, start_time=START)
DONE = f.StatusAnnotations(
    phase=f.SUCCEEDED, start_time=START, completion_time="2026-11-16T12:00:09Z"
)


def counted(*told: f.StatusAnnotations) -> dict[str, float]:
    """After these annotations were stored, one after the other."""
    registry, notes = CollectorRegistry(), f.StatusAnnotations()
    metrics = TrainJobMetrics(registry)
    for found in told:
        meta = ObjectMeta(
            name="a",
            namespace="b",
            creation_timestamp=BORN,
            annotations={k: v for k, v in f.changes(f.StatusAnnotations(), notes).items() if v},
        )
        transitions.count_transitions(
            metrics, TrainJob(metadata=meta), "mpi", TrainJobDecision(TrainJobStatus(), found)
        )
        notes = found
    where = {"namespace": "b", "framework": "mpi"}
    return {
        "running": metrics.running.labels("b", "mpi")._value.get(),
        "succeeded": metrics.succeeded.labels("b", "mpi")._value.get(),
        "seconds": sum(
            sample.value
            for family in metrics.to_running.collect()
            for sample in family.samples
            if sample.name.endswith("_sum") and sample.labels == where
        ),
    }


def test_a_job_is_counted_as_running_once_also_where_that_is_told_with_its_end() -> None:
    assert counted(RUNS, DONE) == {"running": 1, "succeeded": 1, "seconds": 7}
    assert counted(DONE) == {"running": 1, "succeeded": 1, "seconds": 7}
