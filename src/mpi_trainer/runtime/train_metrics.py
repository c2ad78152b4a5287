"""Counts of TrainJobs, by namespace and framework (CTL-12). Upstream has none of its own.

As for MPIJobs they move once a state is stored, never before: a write that fails and is repeated
must not count twice.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from mpi_trainer.runtime.job_metrics import DURATIONS, STARTS

_PREFIX = "kubeflow_trainer_trainjob_"
_LABELS = ("namespace", "framework")


class TrainMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def count(name: str, text: str) -> Counter:
            return Counter(f"{_PREFIX}{name}_total", text, _LABELS, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"{_PREFIX}{name}", text, _LABELS, buckets=buckets, registry=registry)

        self.created = count("created", "TrainJobs that got a JobSet.")
        self.suspended = count("suspended", "Suspensions of TrainJobs.")
        self.running = count("running", "TrainJobs all of whose pods ran.")
        self.succeeded = count("succeeded", "TrainJobs that succeeded.")
        self.failed = count("failed", "TrainJobs that failed.")
        self.duration = histogram("duration_seconds", "From running to the end.", DURATIONS)
        self.to_running = histogram("time_to_running_seconds", "Creation to running.", STARTS)
