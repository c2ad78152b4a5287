"""The metrics that our processes define, read out of the registries that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry

from mpi_trainer.runtime.job_metrics import (
    MPIJobMetrics,
    PresentMPIJobs,
    PresentTrainJobs,
    TrainJobMetrics,
)
from mpi_trainer.runtime.metrics import Metrics
from mpi_trainer.runtime.tls import ServerCertificate
from mpi_trainer.server.callers import Caller
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.metrics import ServerMetrics
from mpi_trainer.webhook.metrics import admitted, middleware, watch_certificate

_SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def ours() -> dict[str, frozenset[str]]:
    """Labels by the name of a series; as controller, webhook and server make them."""
    controller = Metrics().registry
    MPIJobMetrics(controller)
    TrainJobMetrics(controller)
    controller.register(PresentMPIJobs((), lambda: True))
    controller.register(PresentTrainJobs((), lambda: True))
    webhook = Metrics().registry
    middleware(webhook)
    admitted(webhook)
    watch_certificate(webhook, ServerCertificate())
    server = ServerMetrics(Calls(_Nobody())).registry
    return {**dict(_series(controller)), **dict(_series(webhook)), **dict(_series(server))}


class _Nobody:
    """Calls that nobody makes."""

    def caller(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> Caller:
        raise AssertionError


def _series(registry: CollectorRegistry) -> Iterator[tuple[str, frozenset[str]]]:
    """A metric without a series yet has no samples; its definition knows the labels."""
    for collector in registry._collector_to_names:
        own: Any = getattr(collector, "_labelnames", None)
        for family in collector.collect():
            labels = own if own is not None else getattr(family, "_labelnames", ())
            for suffix in _SUFFIXES[family.type]:
                more = ("le",) if suffix == "_bucket" else ()
                yield f"{family.name}{suffix}", frozenset((*labels, *more))
