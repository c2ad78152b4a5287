"""What the server tells of itself: calls, how long they take, what is open now.

Names of namespaces, jobs and people are in none of them: a call is known by its endpoint alone.
Needs prometheus_client, which the server's image has and the SDK does not ask for.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from mpi_trainer.server.calls import Calls
from mpi_trainer.server.endpoint import Endpoint

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_NAME: Final = "mpi_trainer_server"


class ServerMetrics:
    """Counts the calls of one server, from when this is made."""

    def __init__(self, calls: Calls) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            f"{_NAME}_requests_total",
            "Calls that were answered, refused or broken off (499).",
            ("endpoint", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            f"{_NAME}_request_duration_seconds",
            "Time to answer.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._gauge("requests_in_flight", "Calls not answered.").set_function(lambda: calls.running)
        self._gauge("live_streams", "Open streams.").set_function(lambda: calls.hub.streams)
        calls.observe = self._observe

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_NAME}_{name}", text, registry=self.registry)

    def _observe(self, endpoint: Endpoint, status: int, seconds: float) -> None:
        name = endpoint.name.removesuffix("Short")
        self._requests.labels(name, str(status)).inc()
        self._seconds.labels(name).observe(seconds)
