"""A kubelet's logs for a cluster without nodes: the API server asks it as it asks a real one, after
it has asked itself whether the caller may read them.

A line is there from the moment that it is said, at the time that it was said; reading begins at a
whole second, as kubelets take it.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from aiohttp import web

from tests.api.admin import MERGE, Admin
from tools.cluster.spec import Spec

_ROUTE = "/containerLogs/{namespace}/{pod}/{container}"


class KubeletLogs:
    """Serves in a thread of its own while it is entered, for pods on its `node`."""

    def __init__(self, admin: Admin) -> None:
        self.node = f"node-{secrets.token_hex(4)}"
        self.asked: list[dict[str, str]] = []
        self._admin = admin
        self._address = admin.spec.api_host
        self._tls = _tls(admin.spec)
        self._lines: list[tuple[datetime, str]] = []
        self._over = self._broken = False
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}}
        self._admin.call("POST", "/api/v1/nodes", node)
        status = {
            "addresses": [{"type": "InternalIP", "address": self._address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        self._admin.call("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": status}, MERGE)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._admin.call("DELETE", f"/api/v1/nodes/{self.node}")
        self.end()
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def say(self, *lines: str) -> None:
        """The container writes."""
        self._lines += [(datetime.now(UTC), line) for line in lines]
        self._wake()

    def end(self) -> None:
        """The container ends: whoever follows has all of it."""
        self._over = True
        self._wake()

    def break_off(self) -> None:
        """Whoever follows loses the connection."""
        self._broken = True
        self._wake()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)

    async def _open(self) -> int:
        app = web.Application()
        app.router.add_get(_ROUTE, self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address, 0, ssl_context=self._tls).start()
        return int(self._runner.addresses[0][1])

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        self.asked.append(query)
        begins = datetime.fromisoformat(query.get("sinceTime", "1970-01-01T00:00:00Z"))
        said = web.StreamResponse()
        await said.prepare(request)
        place, follows = 0, query.get("follow") == "true"
        while True:
            self._changed.clear()
            new = self._lines[place:]
            place += len(new)
            text = "".join(f"{at.isoformat()} {line}\n" for at, line in new if at >= begins)
            await said.write(text.encode())
            if not follows or self._over:
                return said
            await self._changed.wait()
            if self._broken:
                self._broken = False
                assert request.transport is not None
                request.transport.abort()
                return said


def _tls(spec: Spec) -> ssl.SSLContext:
    """With a certificate for this address; only the API server is answered."""
    pki = spec.state / "pki"
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    made.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    made.verify_mode = ssl.CERT_REQUIRED
    return made
