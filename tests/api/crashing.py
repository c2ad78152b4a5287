"""A proxy between the controller and the API server that kills the controller in mid-write.

It speaks plain HTTP to the controller and TLS to the server, as the administrator. It counts every
write; at the one that is chosen, it kills the controller with SIGKILL before passing the write on,
or after the server has carried it out but before answering, or right after the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

import aiohttp
from aiohttp import web

from tools.cluster.spec import Spec

Moment = Literal["before", "committed", "answered"]
MOMENTS: Final[tuple[Moment, ...]] = ("before", "committed", "answered")
_HOP = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")


class Write(NamedTuple):
    """A write that reached the server, and when. `name` and `uid` are the answer's."""

    method: str
    path: str
    code: int
    name: str = ""
    uid: str = ""
    sent: float = 0.0

    @property
    def kind(self) -> str:
        """The plural of what was written."""
        parts = self.path.split("/")
        place = parts.index("namespaces") + 2 if "namespaces" in parts else -1
        return parts[place]


class CrashingProxy:
    """For one controller. `kill` must end its process before it returns."""

    def __init__(self, spec: Spec, kill: Callable[[], None]) -> None:
        pki = spec.state / "pki"
        self._server = spec.api_url
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._tls.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        self._kill = kill
        self.target: tuple[int, Moment] | None = None
        self.fired = threading.Event()
        self.writes: list[Write] = []
        self._count = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def kubeconfig(self, folder: Path) -> Path:
        """A configuration that leads here."""
        cluster = {"server": f"http://127.0.0.1:{self.port}"}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        path = folder / f"kubeconfig-{self.port}"
        path.write_text(json.dumps(text))
        return path

    def made(self, kind: str) -> list[Write]:
        """The objects of a kind that were created, in their order."""
        return [w for w in self.writes if w.method == "POST" and w.kind == kind and w.code == 201]

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=0), auto_decompress=False
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{tail:.*}", self._pass)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        assert self._runner is not None
        assert self._session is not None
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._session.close()
        # TLS says goodbye in its own time, and a loop that ends before leaves its sockets behind.
        # What then is still watched is the loop's own.
        watched = self._loop._selector.get_map()  # type: ignore[attr-defined]
        deadline = self._loop.time() + 15
        while len(watched) > 1 and self._loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return await self._read(request)
        number, self._count = self._count, self._count + 1
        moment = self.target[1] if self.target and self.target[0] == number else None
        if moment == "before":
            await self._crash()
            raise web.HTTPServiceUnavailable
        sent = time.monotonic()
        async with self._forward(request) as answer:
            body = await answer.read()
            self._note(request, answer.status, body, sent)
            if moment == "committed":
                await self._crash()
            response = web.Response(status=answer.status, body=body, headers=_plain(answer.headers))
            if moment == "answered":
                with contextlib.suppress(ConnectionError):
                    await response.prepare(request)
                    await response.write_eof()
                await self._crash()
            return response

    async def _read(self, request: web.Request) -> web.StreamResponse:
        async with self._forward(request) as answer:
            response = web.StreamResponse(status=answer.status, headers=_plain(answer.headers))
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):  # the controller was killed meanwhile
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response

    def _forward(self, request: web.Request) -> Any:
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        return self._session.request(
            request.method,
            self._server + request.raw_path,
            headers=headers,
            data=request.content if request.body_exists else None,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def _crash(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._kill)
        self.fired.set()

    def _note(self, request: web.Request, code: int, body: bytes, sent: float) -> None:
        meta = json.loads(body).get("metadata", {}) if body.startswith(b"{") else {}
        name, uid = meta.get("name", ""), meta.get("uid", "")
        self.writes.append(Write(request.method, request.path, code, name, uid, sent))


def _plain(headers: Any) -> dict[str, str]:
    return {k: v for k, v in headers.items() if k.lower() not in _HOP}
