"""Metrics under the names that dashboards for controllers already use.

The registry is a value, not the library's global one, so that two managers in one process (tests)
do not share counts. What can be read when asked (depths, ages, leadership) is read then and costs
nothing otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mpi_trainer.runtime.reflector import Reflector
from mpi_trainer.runtime.workqueue import WorkQueue

_QUEUE_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0)
_WORK_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_CALL_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_OUTCOMES = ("success", "error", "requeue", "requeue_after")


class Metrics:
    """The machinery's counts of one process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._queues = _Queues()
        self.registry.register(self._queues)
        self._reflectors = _Reflectors()
        self.registry.register(self._reflectors)
        self._queue_counts()
        self._reconcile_counts()
        self._client_counts()
        self._other_counts()

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _seconds(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def _queue_counts(self) -> None:
        labels = ("name", "controller")
        self.queue_adds = self._counter("workqueue_adds_total", "Keys added.", *labels)
        self.queue_retries = self._counter("workqueue_retries_total", "Keys retried.", *labels)
        self.queue_wait = self._seconds(
            "workqueue_queue_duration_seconds", "Time keys waited.", _QUEUE_SECONDS, *labels
        )
        self.queue_work = self._seconds(
            "workqueue_work_duration_seconds", "Time keys were worked on.", _WORK_SECONDS, *labels
        )

    def _reconcile_counts(self) -> None:
        prefix, label = "controller_runtime_", "controller"
        self.reconciles = self._counter(
            f"{prefix}reconcile_total", "Reconciles by result.", label, "result"
        )
        self.reconcile_errors = self._counter(
            f"{prefix}reconcile_errors_total", "Reconciles that failed.", label
        )
        self.reconcile_terminal_errors = self._counter(
            f"{prefix}terminal_reconcile_errors_total", "Failures not tried again.", label
        )
        self.reconcile_panics = self._counter(
            f"{prefix}reconcile_panics_total", "Failures that are faults of the program.", label
        )
        self.reconcile_timeouts = self._counter(
            f"{prefix}reconcile_timeouts_total", "Reconciles that ran out of time.", label
        )
        self.reconcile_seconds = self._seconds(
            f"{prefix}reconcile_time_seconds", "Time of a reconcile.", _WORK_SECONDS, label
        )
        self.workers_limit = self._gauge(
            f"{prefix}max_concurrent_reconciles", "Workers at most.", label
        )
        self.workers_active = self._gauge(f"{prefix}active_workers", "Workers at work.", label)

    def _client_counts(self) -> None:
        self.calls = self._counter(
            "rest_client_requests_total", "API requests.", "code", "method", "host"
        )
        self.call_seconds = self._seconds(
            "rest_client_request_duration_seconds", "API latency.", _CALL_SECONDS, "verb", "host"
        )

    def _other_counts(self) -> None:
        self.leads = self._gauge("leader_election_master_status", "1 while leading.", "name")
        self.leads_upstream = self._gauge("mpi_operator_is_leader", "1 while leading.")
        self.lease_slow_path = self._counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease.", "name"
        )
        self.loop_lag = self._gauge(
            "event_loop_lag_seconds", "How late the event loop was, at worst, in the last minute."
        )
        self.events_dropped = self._counter(
            "event_recorder_dropped_total", "Events that could not be recorded."
        )

    def queue(self, name: str) -> QueueCounts:
        """An observer for a queue; `watch_queue` then shows its depth."""
        return QueueCounts(self, name)

    def watch_queue(self, name: str, queue: WorkQueue[Any]) -> None:
        self._queues.named[name] = queue

    def watch_reflector(self, reflector: Reflector[Any]) -> None:
        self._reflectors.all.append(reflector)

    def start_controller(self, name: str, workers: int) -> None:
        """Series exist from the start, so that a rate over them is right from the first event."""
        self.workers_limit.labels(name).set(workers)
        for outcome in _OUTCOMES:
            self.reconciles.labels(name, outcome)
        for counter in (
            self.reconcile_errors,
            self.reconcile_terminal_errors,
            self.reconcile_panics,
            self.reconcile_timeouts,
        ):
            counter.labels(name)

    def observe_call(self, host: str) -> Callable[[str, str, int, float], None]:
        """The API client's hook; an answer that never came has the code `<error>`."""

        def observe(method: str, path: str, code: int, seconds: float) -> None:
            self.calls.labels(str(code) if code else "<error>", method, host).inc()
            self.call_seconds.labels(method, host).observe(seconds)

        return observe


class QueueCounts:
    """Counts of one work queue."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._adds = metrics.queue_adds.labels(name, name)
        self._retries = metrics.queue_retries.labels(name, name)
        self._wait = metrics.queue_wait.labels(name, name)
        self._work = metrics.queue_work.labels(name, name)

    def added(self) -> None:
        self._adds.inc()

    def started(self, waited: float) -> None:
        self._wait.observe(waited)

    def finished(self, worked: float) -> None:
        self._work.observe(worked)

    def retried(self) -> None:
        self._retries.inc()


class _Queues(Collector):
    """Depths and ages, read when they are asked for."""

    def __init__(self) -> None:
        self.named: dict[str, WorkQueue[Any]] = {}

    def collect(self) -> Iterator[Metric]:
        labels = ["name", "controller"]
        depth = GaugeMetricFamily(
            "workqueue_depth", "Keys that wait.", labels=[*labels, "priority"]
        )
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Sum over keys in work.", labels=labels
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Oldest key in work.", labels=labels
        )
        for name, queue in self.named.items():
            depth.add_metric([name, name, "0"], queue.depth(urgent=True))
            depth.add_metric([name, name, "-100"], queue.depth(urgent=False))
            ages = queue.ages()
            unfinished.add_metric([name, name], sum(ages))
            longest.add_metric([name, name], max(ages, default=0.0))
        yield from (depth, unfinished, longest)


class _Reflectors(Collector):
    """What reflectors did, read when it is asked for."""

    def __init__(self) -> None:
        self.all: list[Reflector[Any]] = []

    def collect(self) -> Iterator[Metric]:
        def count(name: str, text: str, value: Callable[[Reflector[Any]], int]) -> Metric:
            family = CounterMetricFamily(f"reflector_{name}", text, labels=["name"])
            for reflector in self.all:
                family.add_metric([reflector.name], value(reflector))
            return family

        yield count("lists", "Full lists.", lambda r: r.lists)
        yield count("relists", "Full lists after the first.", lambda r: max(0, r.lists - 1))
        yield count("watches", "Watches opened.", lambda r: r.watches)
        yield count("unreadable_objects", "Objects not decoded.", lambda r: r.unreadable)
        age = GaugeMetricFamily(
            "reflector_last_event_age_seconds",
            "Since anything was heard of this kind.",
            labels=["name"],
        )
        if self.all:
            now = asyncio.get_running_loop().time()
            for reflector in self.all:
                age.add_metric([reflector.name], now - reflector.heard_at)
        yield age
