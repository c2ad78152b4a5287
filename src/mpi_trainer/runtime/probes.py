"""What the kubelet reads: /healthz, /readyz; and /metrics, where they are not served apart.

Healthy: a restart would not help. It fails only for what is wrong with this process (a late loop,
a reflector that stopped trying, a pass that never ends), never because the API server is away: that
would restart all replicas just when they cannot start. Ready: caches are filled, and other parts
(webhooks) say so too. Leading is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, Self

from aiohttp import web

from mpi_trainer.runtime.metrics import Metrics

Check = Callable[[], str]
"""What is wrong, in one sentence; empty if nothing is."""


class Text(Protocol):
    def text(self) -> bytes:
        """All series, as Prometheus reads them."""


class Probes:
    """An HTTP server for as long as it is entered. `checks` are asked at every request."""

    def __init__(
        self,
        metrics: Metrics | None,
        *,
        ports: Sequence[int] = (8080,),
        host: str | None = None,
    ) -> None:
        """`host` None means every address, of both families; port 0 picks a free one. `metrics`
        None: they are served elsewhere (`metrics_server`)."""
        self._metrics = metrics
        self._ports = ports
        self._host = host
        self.healthy: dict[str, Check] = {}
        self.ready: dict[str, Check] = {}
        self._runner: web.AppRunner | None = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        assert self._runner is not None, "the server is not started"
        return [(str(address[0]), int(address[1])) for address in self._runner.addresses]

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        if self._metrics is not None:
            app.router.add_get("/metrics", partial(_text, self._metrics))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            for port in self._ports:
                await web.TCPSite(self._runner, self._host, port).start()
        except BaseException:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _: web.Request) -> web.Response:
        return _answer(self.healthy)

    async def _readyz(self, _: web.Request) -> web.Response:
        return _answer(self.ready)


async def _text(metrics: Metrics, _: web.Request) -> web.Response:
    return as_text(metrics)


def as_text(metrics: Text) -> web.Response:
    """What Prometheus reads."""
    return web.Response(
        body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )


def _answer(checks: Mapping[str, Check]) -> web.Response:
    problems = {name: check() for name, check in checks.items()}
    bad = [f"{name}: {why}" for name, why in problems.items() if why]
    return web.Response(text="\n".join(bad) if bad else "ok", status=503 if bad else 200)
