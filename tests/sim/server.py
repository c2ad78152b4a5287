"""A small API server that misbehaves as told: for faults that the real one will not produce.

    async with Server([Fault("answer", code=429, retry_after="1")]) as server:
        async with Client(server.config) as client: ...

`objects` is the store (put things there, look at them), `faults` the list of what goes wrong
(append at any time), `requests` what arrived, in order. All on loopback, gone with the block.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from mpi_trainer.kube.config import Config
from mpi_trainer.kube.resources import Resource
from tests.sim.faults import WATCHES, Fault, take
from tests.sim.objects import Key, Object, Objects, Refusal
from tests.sim.patches import merged, patched
from tests.sim.watches import Selection, Watch


class Arrived(msgspec.Struct, frozen=True):
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def object(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Server:
    """The scripted API server. `bookmarks` is how often watches get one, in seconds."""

    def __init__(
        self,
        faults: Iterable[Fault] = (),
        *,
        bookmarks: float = 0.5,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.faults = list(faults)
        self.objects = Objects()
        self.requests: list[Arrived] = []
        self.bookmarks = bookmarks
        self.url = ""
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._port = 0
        self._stop = asyncio.Event()
        self._watches: set[Watch] = set()

    @property
    def config(self) -> Config:
        """How to reach it."""
        return Config(self.url, source="the scripted server")

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"
        return self

    async def start(self) -> None:
        """Listen, after a `halt` at the same port."""
        assert self._runner
        self._site = web.TCPSite(
            self._runner,
            "127.0.0.1",
            self._port,
            ssl_context=self._tls,
            reuse_address=True,
        )
        await self._site.start()

    async def halt(self) -> None:
        """Be away, as a server that restarts: connections break, new ones are refused."""
        assert self._runner and self._runner.server and self._site
        await self._site.stop()
        self.cut_watches()
        for connection in self._runner.server.connections:
            if connection.transport:
                connection.transport.abort()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._runner
        self._stop.set()
        self.cut_watches()
        await self._runner.cleanup()

    def put(self, resource: Resource, obj: Object) -> Object:
        """Create an object, or write it in the place of one of its name."""
        meta = obj["metadata"]
        key = key_of(resource, meta.get("namespace", ""), meta["name"])
        if key in self.objects.objects:
            return self.objects.write(key, obj)
        return self.objects.create(key[0], key[1], obj)

    def remove(self, resource: Resource, namespace: str, name: str) -> None:
        """Delete an object."""
        self.objects.delete(key_of(resource, namespace, name))

    def cut_watches(self) -> None:
        """Break every open watch, as a restarted server or load balancer does."""
        for watch in list(self._watches):
            watch.abort()

    def sent(self, method: str, part: str = "") -> list[Arrived]:
        """The requests of one method that have this in their path."""
        return [one for one in self.requests if one.method == method and part in one.path]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        body = await request.read()
        self.requests.append(
            Arrived(request.method, request.path, query, dict(request.headers), body)
        )
        fault = take(self.faults, request.method, request.path, query)
        if fault and fault.kind not in WATCHES and fault.kind not in ("lose", "late"):
            return await self._misbehave(request, fault)
        try:
            if query.get("watch") in ("true", "1"):
                return await self._watch(request, query, fault)
            answer = self._process(request, query, body)
        except Refusal as refusal:
            answer = _status(refusal.code, refusal.reason, refusal.message)
        if fault and fault.kind == "lose":
            return _abort(request)
        if fault and fault.kind == "late":
            await asyncio.sleep(fault.seconds)
        return answer

    async def _misbehave(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "hang":
            await self._stop.wait()
        if fault.kind in ("hang", "drop"):
            return _abort(request)
        if fault.kind == "page":
            page = "<html><body>Bad\n\tGateway</body></html>"
            return web.Response(status=fault.code, text=page, content_type="text/html")
        answer = _status(fault.code, fault.reason, fault.message)
        if fault.retry_after:
            answer.headers["Retry-After"] = fault.retry_after
        return answer

    async def _watch(
        self, request: web.Request, query: dict[str, str], fault: Fault | None
    ) -> web.StreamResponse:
        collection, namespace, _, _ = place(request.path)
        selection = Selection(
            collection, namespace, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        watch = Watch(self.objects, selection, fault)
        self._watches.add(watch)
        try:
            return await watch.serve(request, query, self.bookmarks, self._stop)
        finally:
            self._watches.discard(watch)

    def _process(self, request: web.Request, query: dict[str, str], body: bytes) -> web.Response:
        collection, namespace, name, sub = place(request.path)
        key = (collection, namespace, name)
        given = json.loads(body) if body else {}
        match request.method, bool(name):
            case "GET", False:
                return self._list(key, query)
            case "GET", True:
                return _json(self.objects.get(key))
            case "POST", False:
                return _json(self.objects.create(collection, namespace, given), 201)
            case "PUT", True:
                return _json(self.objects.write(key, given, sub))
            case "PATCH", True:
                return _json(self._patch(key, sub, given, request.content_type))
            case "DELETE", True:
                conditions = given.get("preconditions", {})
                uid, version = conditions.get("uid", ""), conditions.get("resourceVersion", "")
                return _json(self.objects.delete(key, uid, version))
            case _:
                raise Refusal(405, "MethodNotAllowed", "not in this script")

    def _patch(self, key: Key, sub: str, given: Any, content_type: str) -> Object:
        if content_type == "application/apply-patch+yaml" and key not in self.objects.objects:
            given.setdefault("metadata", {})["name"] = key[2]
            return self.objects.create(key[0], key[1], given)
        old = self.objects.get(key)
        if content_type == "application/json-patch+json":
            return self.objects.write(key, patched(old, given), sub)
        return self.objects.write(key, merged(old, given), sub)

    def _list(self, key: Key, query: dict[str, str]) -> web.Response:
        found = list(
            self.objects.select(
                key[0], key[1], query.get("labelSelector", ""), query.get("fieldSelector", "")
            )
        )
        version, after = self.objects.version, None
        if query.get("continue"):
            token = json.loads(base64.b64decode(query["continue"]))
            version, after = token["version"], tuple(token["after"])
            if version < self.objects.oldest:
                raise Refusal(410, "Expired", "The provided continue parameter is too old")
        rest = [(key, one) for key, one in found if after is None or key > after]
        limit = int(query.get("limit") or 0) or len(rest)
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if len(rest) > limit:
            token = {"version": version, "after": rest[limit - 1][0]}
            meta["continue"] = base64.b64encode(json.dumps(token).encode()).decode()
            meta["remainingItemCount"] = len(rest) - limit
        return _json({"metadata": meta, "items": [one for _, one in rest[:limit]]})


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """Where an object is in the store."""
    collection, place_namespace, _, _ = place(resource.path(namespace))
    return (collection, place_namespace, name)


def place(path: str) -> tuple[str, str, str, str]:
    """Collection, namespace, name and subresource of a path."""
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    root, rest = parts[:depth], parts[depth:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    rest += [""] * 3
    return "/".join([*root, rest[0]]), namespace, rest[1], rest[2]


def _abort(request: web.Request) -> web.StreamResponse:
    if request.transport:
        request.transport.abort()
    return web.Response()


def _json(value: Any, code: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(value), status=code, content_type="application/json"
    )


def _status(code: int, reason: str, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return _json({**status, "reason": reason, "message": message}, code)
