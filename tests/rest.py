"""The REST API as tests use it: a server in this process, plain requests, and a Backend that does
everything by requests, so that `tests/lifecycle.py` runs over HTTP.

The Backend asks again and again where others are told; `tests/live_reader.py` reads the streams.
"""

from __future__ import annotations

import asyncio
import faulthandler
import http.client
import json
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import aiohttp
import msgspec

from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.sdk.backends.backend import (
    ALL_JOBS,
    Backend,
    EventInfo,
    JobDetails,
    JobQuery,
    JobSummary,
    JobView,
    Key,
    LogLine,
    LogQuery,
    PodInfo,
    RankInfo,
)
from mpi_trainer.sdk.backends.cluster.defaults import for_cluster
from mpi_trainer.sdk.backends.views import mpijob_view
from mpi_trainer.sdk.errors import JobError, JobExists, JobNotFound
from mpi_trainer.server import values
from mpi_trainer.server.app import Settings
from mpi_trainer.server.callers import Callers
from mpi_trainer.server.calls import Calls
from mpi_trainer.server.serve import LOOPBACK, listening

LOOK_SECONDS = 0.1
_ERRORS: Mapping[str, type[JobError]] = {"not-found": JobNotFound, "exists": JobExists}


class Reply(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


class Form:
    """multipart/form-data as a program writes it."""

    MEDIA_TYPE = "multipart/form-data; boundary=odh-test"

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def part(self, head: str, data: bytes) -> Form:
        disposition = f"Content-Disposition: form-data; {head}\r\n\r\n"
        self._parts.append(b"--odh-test\r\n" + disposition.encode() + data + b"\r\n")
        return self

    def job(self, manifest: object) -> Form:
        return self.part('name="job"; filename="job.json"', json.dumps(manifest).encode())

    def files(self, names: Mapping[str, bytes]) -> Form:
        for name, data in names.items():
            self.part(f'name="files"; filename="{name}"', data)
        return self

    def archive(self, data: bytes) -> Form:
        return self.part('name="archive"; filename="code"', data)

    def body(self) -> bytes:
        return b"".join(self._parts) + b"--odh-test--\r\n"


class Rest(msgspec.Struct, frozen=True):
    """A server, and the login that is sent to it; none where it is empty."""

    port: int
    token: str = ""

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        login = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        kind = {} if body is None else {"Content-Type": "application/json"}
        sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=60)
        try:
            connection.request(method, path, sent, login | kind | dict(headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def send(self, path: str, form: Form) -> Reply:
        return self.ask("POST", path, form.body(), {"Content-Type": form.MEDIA_TYPE})

    def get(self, path: str, **headers: str) -> Any:
        reply = self.ask("GET", path, headers=headers)
        assert reply.status == 200, reply
        return reply.data


class _Loop(asyncio.SelectorEventLoop):
    """Closes what was accepted just before its server stopped. Python 3.11 forgets such a socket,
    and the warning about it would be a fault of whichever test runs by then."""

    def _make_socket_transport(
        self, sock: socket.socket, *words: Any, server: asyncio.Server | None = None, **further: Any
    ) -> asyncio.Transport:
        if server is not None and not server.sockets:
            sock.close()
            raise ConnectionAbortedError("the server has stopped")
        make: Any = super()
        made: asyncio.Transport = make._make_socket_transport(
            sock, *words, server=server, **further
        )
        return made


@contextmanager
def served(
    callers: Callers, settings: Settings | None = None, calls: Calls | None = None
) -> Iterator[int]:
    """A server in a thread of its own; its port."""
    ready: asyncio.Queue[Any] = asyncio.Queue()
    loop = _Loop()
    stop = asyncio.Event()

    async def work() -> None:
        async with listening(callers, LOOPBACK, 0, settings, calls) as port:
            ready.put_nowait(port)
            await stop.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(work())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(ready.get(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(stop.set)
        join(thread)


def join(server: threading.Thread) -> None:
    server.join(30)
    if server.is_alive():
        faulthandler.dump_traceback(2)
        raise AssertionError("the server has not ended: what its threads do is on stderr")


class RestBackend:
    """What `tests/lifecycle.py` needs of a Backend, for MPIJobs. Jobs that name no image, as those
    of this machine do, get this one."""

    def __init__(self, server: Rest, namespace: str = "default", image: str = "") -> None:
        self._server = server
        self.namespace = namespace
        self.name = "rest"
        self._image = image

    def _wire(self, job: MPIJob) -> dict[str, Any]:
        ready = for_cluster(job, self._image, sys.executable) if self._image else job
        wire: dict[str, Any] = to_wire(ready)
        return wire

    def of_kind(self, kind: str) -> RestBackend:
        assert kind in ("", "MPIJob")
        return self

    async def create(self, job: MPIJob, workdir: str = "") -> JobView:
        assert not workdir, "code is not uploaded yet"
        where = job.namespace or self.namespace
        return _view(await self._ask("POST", f"namespaces/{where}/mpijobs", self._wire(job)))

    async def get(self, key: Key) -> JobView:
        return _view(await self._ask("GET", _path(key)))

    async def details(self, key: Key) -> JobDetails:
        view = await self.get(key)
        found = msgspec.convert(await self._ask("GET", f"{_path(key)}/status"), values.JobStatus)
        events = await self._ask("GET", f"{_path(key)}/events")
        return JobDetails(
            job=view,
            pods=_alike(found.pods, tuple[PodInfo, ...]),
            ranks=_alike(
                [{"pid": 0} | msgspec.structs.asdict(one) for one in found.ranks],
                tuple[RankInfo, ...],
            ),
            events=msgspec.convert(events["items"], tuple[EventInfo, ...]),
            progress=_alike(found.progress, Progress | None),
            waits_for=found.waits_for,
            missing=found.missing,
        )

    async def list(
        self, namespace: str | None = None, query: JobQuery = ALL_JOBS
    ) -> Sequence[JobSummary]:
        where = f"namespaces/{namespace}/" if namespace else ""
        found = await self._ask("GET", f"{where}mpijobs?limit=500")
        items = msgspec.convert(found["items"], tuple[values.JobItem, ...])
        return [
            JobSummary(Key(one.namespace, one.name), one.state, one.created, kind=one.kind)
            for one in items
        ]

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        read, known = 0, False
        while True:
            try:
                finished = (await self.get(key)).finished
                lines = await self._lines(key, query)
            except JobNotFound:
                if known and query.follow:
                    return
                raise
            known = True
            for line in lines[read:]:
                yield line
            read = max(read, len(lines))
            if finished or not query.follow:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _lines(self, key: Key, query: LogQuery) -> tuple[LogLine, ...]:
        wanted = {
            "tail": query.tail or 10_000,
            "rank": query.rank,
            "worker": query.worker,
            "contains": query.grep,
            "attempt": query.attempt,
        }
        asked = "&".join(
            f"{k}={str(v).replace(' ', '+')}" for k, v in wanted.items() if v is not None
        )
        found = await self._ask("GET", f"{_path(key)}/logs?{asked}")
        return msgspec.convert(found["items"], tuple[LogLine, ...])

    async def watch(self, key: Key) -> AsyncGenerator[JobView, None]:
        last: JobView | None = None
        while True:
            try:
                now = await self.get(key)
            except JobNotFound:
                if last is None:
                    raise
                return
            if last is None or now.conditions != last.conditions:
                yield now
            last = now
            if now.finished:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def suspend(self, key: Key, seen: JobView | None = None) -> JobView:
        return _view(await self._ask("POST", f"{_path(key)}/suspend"))

    async def resume(self, key: Key, seen: JobView | None = None) -> JobView:
        return _view(await self._ask("POST", f"{_path(key)}/resume"))

    async def restart(self, key: Key, seen: JobView | None = None) -> JobView:
        return _view(await self._ask("POST", f"{_path(key)}/restart"))

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        await self._ask("DELETE", _path(key))

    async def usage(self, keys: Sequence[Key], gpu_metrics: object = None) -> dict[Key, Any]:
        return {}

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self._server.token}", "Accept": "application/json"}
        address = f"http://{LOOPBACK}:{self._server.port}/api/v1/{path}"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, address, json=body) as reply,
        ):
            text = await reply.read()
            found: Any = json.loads(text) if text else None
        if reply.status < 400:
            return found
        kind = _ERRORS.get(found["type"].rpartition(":")[2], JobError)
        raise kind(found["detail"], found["hint"])


def backend(server: Rest, namespace: str = "default", image: str = "") -> Backend:
    """The part of the protocol that is needed here."""
    made: Any = RestBackend(server, namespace, image)
    return made  # type: ignore[no-any-return]


def _path(key: Key) -> str:
    return f"namespaces/{key.namespace}/mpijobs/{key.name}"


def _view(found: Mapping[str, Any]) -> JobView:
    return mpijob_view(decode(MPIJob, found["manifest"]).value, found["manifest"])


def _alike(found: Any, kind: Any) -> Any:
    return msgspec.convert(found, kind, from_attributes=True)
