"""Counts of MPIJobs, for the dashboards of both families of operators, and of TrainJobs (CTL-12).

The controller calls these once a state is stored in a job's status, never before: a status write
that fails and is repeated must not count twice. Series of a deleted job are taken away.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

DURATIONS = (10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0)
STARTS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 900.0)
_MPIJOB = "training_operator_mpijob_"
_UPSTREAM = "mpi_operator_"
_TRAINER = "kubeflow_trainer_trainjob_"
_TRAINER_LABELS = ("namespace", "framework")


class MPIJobMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(
                f"{_MPIJOB}{name}", text, ("namespace",), buckets=buckets, registry=registry
            )

        self._created = count(f"{_MPIJOB}created_total", "MPIJobs accepted.", "namespace")
        self._queued = count(f"{_MPIJOB}queued_total", "MPIJobs that had to wait.", "namespace")
        self._running = count(f"{_MPIJOB}running_total", "MPIJobs that ran.", "namespace")
        self._succeeded = count(f"{_MPIJOB}succeeded_total", "MPIJobs that succeeded.", "namespace")
        self._failed = count(f"{_MPIJOB}failed_total", "MPIJobs that failed.", "namespace")
        self._restarted = count(f"{_MPIJOB}restarted_total", "New attempts.", "namespace")
        self._duration = histogram("duration_seconds", "From start to end.", DURATIONS)
        self._to_running = histogram("time_to_running_seconds", "Creation to running.", STARTS)
        self._all_created = count(f"{_UPSTREAM}jobs_created_total", "MPIJobs accepted.")
        self._all_succeeded = count(f"{_UPSTREAM}jobs_successful_total", "MPIJobs that succeeded.")
        self._all_failed = count(f"{_UPSTREAM}jobs_failed_total", "MPIJobs that failed.")
        self._info = Gauge(
            f"{_UPSTREAM}job_info",
            "1 for each MPIJob that has a launcher.",
            ("launcher", "namespace"),
            registry=registry,
        )

    def created(self, namespace: str) -> None:
        self._created.labels(namespace).inc()
        self._all_created.inc()

    def queued(self, namespace: str) -> None:
        """Suspended, or waiting for room in the cluster."""
        self._queued.labels(namespace).inc()

    def running(self, namespace: str, seconds: float | None = None) -> None:
        """`seconds` since creation; None where waiting was not the cluster's doing (suspended)."""
        self._running.labels(namespace).inc()
        if seconds is not None:
            self._to_running.labels(namespace).observe(seconds)

    def restarted(self, namespace: str) -> None:
        self._restarted.labels(namespace).inc()

    def succeeded(self, namespace: str, seconds: float | None = None) -> None:
        """`seconds` since the start."""
        self._succeeded.labels(namespace).inc()
        self._all_succeeded.inc()
        self._lasted(namespace, seconds)

    def failed(self, namespace: str, seconds: float | None = None) -> None:
        """`seconds` since the start; None for a job that never started."""
        self._failed.labels(namespace).inc()
        self._all_failed.inc()
        self._lasted(namespace, seconds)

    def launcher(self, namespace: str, launcher: str) -> None:
        self._info.labels(launcher, namespace).set(1)

    def deleted(self, namespace: str, launcher: str) -> None:
        self._info.remove(launcher, namespace)

    def _lasted(self, namespace: str, seconds: float | None) -> None:
        if seconds is not None:
            self._duration.labels(namespace).observe(seconds)


class TrainJobMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def count(name: str, text: str) -> Counter:
            return Counter(f"{_TRAINER}{name}_total", text, _TRAINER_LABELS, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(
                f"{_TRAINER}{name}", text, _TRAINER_LABELS, buckets=buckets, registry=registry
            )

        self.created = count("created", "TrainJobs that got a JobSet.")
        self.suspended = count("suspended", "Suspensions of TrainJobs.")
        self.running = count("running", "TrainJobs all of whose pods ran.")
        self.succeeded = count("succeeded", "TrainJobs that succeeded.")
        self.failed = count("failed", "TrainJobs that failed.")
        self.duration = histogram("duration_seconds", "From running to the end.", DURATIONS)
        self.to_running = histogram("time_to_running_seconds", "Creation to running.", STARTS)
