"""Counts of MPIJobs, for the dashboards of both families of operators, and of TrainJobs (CTL-12).

The controller calls these once a state is stored in a job's status, never before: a status write
that fails and is repeated must not count twice. Series of a deleted job are taken away.

How many jobs there are now is counted when it is asked for, by one pass over the store, and only
the replica that leads says it: a sum over replicas is then the number of jobs.
"""

from __future__ import annotations

from collections import Counter as CountOf
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mpi_trainer.api.kinds.conditions import CREATED, RUNNING, SUSPENDED
from mpi_trainer.runtime.partial import HasNames

_HOUR = 3600.0
DURATIONS = (
    *(10.0, 30.0, 60.0, 300.0, 600.0, 900.0, 1800.0),
    *(_HOUR, 2 * _HOUR, 4 * _HOUR, 12 * _HOUR, 24 * _HOUR),
)
STARTS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 2 * _HOUR)
_MPIJOB = "training_operator_mpijob_"
_UPSTREAM = "mpi_operator_"
_TRAINER = "kubeflow_trainer_trainjob_"
_TRAINER_LABELS = ("namespace", "framework")
UNKNOWN = "Unknown"

CountByState = CountOf[tuple[str, str]]


class HasState(Protocol):
    @property
    def metadata(self) -> HasNames: ...
    @property
    def state(self) -> str: ...


Jobs = Iterable[HasState]


class MPIJobMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        def count(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(
                f"{_MPIJOB}{name}", text, ("namespace",), buckets=buckets, registry=registry
            )

        self._created = count(f"{_MPIJOB}created_total", "MPIJobs accepted.", "namespace")
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

    def running(self, namespace: str, seconds: float) -> None:
        """`seconds` since creation."""
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


class PresentJobs(Collector):
    """How many jobs of one kind there are now: `name` by namespace and state."""

    def __init__(self, name: str, kind: str, jobs: Jobs, leading: Callable[[], bool]) -> None:
        self._name = name
        self._kind = kind
        self._jobs = jobs
        self._leading = leading

    def collect(self) -> Iterator[Metric]:
        jobs = self._jobs if self._leading() else ()
        counts = CountByState((job.metadata.namespace, job.state or UNKNOWN) for job in jobs)
        text = f"{self._kind}s that there are now, by state."
        family = GaugeMetricFamily(self._name, text, labels=["namespace", "state"])
        for where, count in counts.items():
            family.add_metric(where, count)
        yield family
        yield from self._sums(counts)

    def _sums(self, counts: CountByState) -> Iterator[Metric]:
        yield from ()


class PresentTrainJobs(PresentJobs):
    def __init__(self, jobs: Jobs, leading: Callable[[], bool]) -> None:
        super().__init__("kubeflow_trainer_trainjobs", "TrainJob", jobs, leading)


class PresentMPIJobs(PresentJobs):
    """Also under the names that were specified, in spite of their suffix."""

    def __init__(self, jobs: Jobs, leading: Callable[[], bool]) -> None:
        super().__init__("training_operator_mpijobs", "MPIJob", jobs, leading)

    def _sums(self, counts: CountByState) -> Iterator[Metric]:
        for name, text, states in (
            ("running_total", "MPIJobs that run now.", (RUNNING,)),
            ("queued_total", "MPIJobs that wait now: created or suspended.", (CREATED, SUSPENDED)),
        ):
            family = GaugeMetricFamily(f"{_MPIJOB}{name}", text, labels=["namespace"])
            for namespace in {namespace for namespace, _ in counts}:
                family.add_metric([namespace], sum(counts[namespace, one] for one in states))
            yield family


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
