"""What admission costs, under the names that dashboards for webhooks already use."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from mpi_trainer.runtime.tls import ServerCertificate

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def middleware(registry: CollectorRegistry) -> Middleware:
    """Counts and times every request by its path; a fault of ours counts as code 500."""
    name = "controller_runtime_webhook"
    seconds = Histogram(
        f"{name}_latency_seconds",
        "Time to answer.",
        ("webhook",),
        buckets=_SECONDS,
        registry=registry,
    )
    total = Counter(f"{name}_requests_total", "Answers.", ("webhook", "code"), registry=registry)
    flying = Gauge(f"{name}_requests_in_flight", "Not answered.", ("webhook",), registry=registry)
    faults = Counter(f"{name}_panics_total", "Faults of ours.", (), registry=registry)

    @web.middleware
    async def measured(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        route = request.match_info.route.resource
        path = route.canonical if route else "unknown"
        began = time.perf_counter()
        code = 500
        try:
            with flying.labels(path).track_inprogress():
                response = await handler(request)
            code = response.status
            return response
        except web.HTTPException as refusal:
            code = refusal.status
            raise
        except Exception:
            faults.inc()
            raise
        finally:
            seconds.labels(path).observe(time.perf_counter() - began)
            total.labels(path, str(code)).inc()

    return measured


def watch_certificate(registry: CollectorRegistry, certificate: ServerCertificate) -> None:
    """Says when the certificate ends that admission shows now, read when it is asked for."""
    ends = Gauge(
        "webhook_certificate_expiration_timestamp_seconds",
        "When the certificate of admission expires.",
        registry=registry,
    )
    ends.set_function(lambda: certificate.ends)


def admitted(registry: CollectorRegistry) -> Callable[[str, str], None]:
    """Counts a job that was created, by its kind and the version that its client wrote (MIG-4)."""
    total = Counter(
        "mpi_trainer_jobs_admitted_total",
        "Jobs created, by kind and the API version of whoever created them.",
        ("kind", "version"),
        registry=registry,
    )

    def count(kind: str, version: str) -> None:
        total.labels(kind, version).inc()

    return count
