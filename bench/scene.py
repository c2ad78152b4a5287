"""What happens to a benchmark's objects, and when this client learned of it.

One watch a kind feeds one record of first times. A milestone is the moment at which the last of the
expected objects got there, as received here: what a user of the API would see, with the API
server's delays in it and the same for every contestant.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import aiohttp
import msgspec

from tools.cluster.errors import ClusterError
from tools.cluster.spec import Spec

NAMESPACE: Final = "bench"
MPIJOBS: Final = f"/apis/kubeflow.org/v2beta1/namespaces/{NAMESPACE}/mpijobs"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS: Final = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
QUIET: Final = 2.0
LONGEST: Final = 600.0
_IN_FLIGHT: Final = 16


class Size(msgspec.Struct, frozen=True):
    """So many jobs of so many workers or nodes each, written `100x4`."""

    jobs: int
    width: int

    @classmethod
    def parse(cls, text: str) -> Size:
        jobs, _, width = text.partition("x")
        return cls(int(jobs), int(width))

    def __str__(self) -> str:
        return f"{self.jobs}x{self.width}"

    @property
    def all(self) -> int:
        """Workers or nodes of all jobs together."""
        return self.jobs * self.width


class _Meta(msgspec.Struct, frozen=True):
    name: str
    resourceVersion: str = ""  # noqa: N815 - the API's spelling
    labels: dict[str, str] = {}


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


class Seen(msgspec.Struct, frozen=True):
    """What a watch tells of an object, as far as milestones need it."""

    metadata: _Meta
    status: _Status = _Status()

    @property
    def conditions(self) -> list[str]:
        """The types of those that hold."""
        return [c.type for c in self.status.conditions if c.status == "True"]


States = Callable[[Seen], list[str]]
"""what is true of an object, in the words of the milestones"""


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, frozen=True):
    resourceVersion: str  # noqa: N815 - the API's spelling


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: tuple[Seen, ...] = ()


def connection(spec: Spec, user: str) -> aiohttp.ClientSession:
    """A session with the cluster's API server as a user who has a certificate there."""
    pki = spec.state / "pki"
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(str(pki / f"{user}.crt"), str(pki / f"{user}.key"))
    connector = aiohttp.TCPConnector(ssl=tls, limit=64)
    limits = aiohttp.ClientTimeout(total=60)
    return aiohttp.ClientSession(spec.api_url, connector=connector, timeout=limits)


async def send(requests: Iterable[Any]) -> None:
    """Send them, some at a time; an error where one is refused."""
    limit = asyncio.Semaphore(_IN_FLIGHT)

    async def one(request: Any) -> None:
        async with limit, request as answer:
            if answer.status >= 300:
                raise ClusterError(f"{answer.status} {(await answer.text())[:500]}")
            await answer.read()

    await asyncio.gather(*(one(request) for request in requests))


class Scene:
    """The objects that are there now, and when each first got to each state since `forget`."""

    def __init__(self, session: aiohttp.ClientSession, watched: Mapping[str, States]) -> None:
        self._session = session
        self._states = watched
        self._first: dict[tuple[str, str], float] = {}
        self._there: dict[str, set[str]] = {path: set() for path in watched}
        self._changed = asyncio.Event()
        self._watches: list[asyncio.Task[None]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch for as long as the block runs."""
        self._watches = [asyncio.create_task(self._watch(path)) for path in self._there]
        try:
            yield
        finally:
            for task in self._watches:
                task.cancel()

    async def until(self, done: Callable[[], bool], seconds: float) -> None:
        """Wait until something is so; an error if it takes too long or a watch broke."""
        deadline = time.monotonic() + seconds
        while not done():
            for broken in (task for task in self._watches if task.done()):
                broken.result()
            if time.monotonic() > deadline:
                raise TimeoutError(f"not after {seconds:.0f} s")
            self._changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), 0.1)

    def forget(self) -> None:
        """All times; what is there stays known."""
        self._first.clear()

    async def post(self, path: str, objects: list[dict[str, Any]]) -> None:
        """Create objects, some at a time."""
        await send(self._session.post(path, json=obj) for obj in objects)

    async def clear(self, *paths: str) -> None:
        """Delete all objects there, and wait until nothing is left of any that is watched."""
        for path in paths:
            await send([self._session.delete(path, json={"propagationPolicy": "Background"})])
        await self.until(lambda: not any(self._there.values()), LONGEST)
        await asyncio.sleep(QUIET)

    def times(self, state: str) -> list[float]:
        """When the objects got to a state, in order."""
        return sorted(at for (what, _), at in self._first.items() if what == state)

    async def _watch(self, path: str) -> None:
        async with self._session.get(path) as answer:
            answer.raise_for_status()
            listed = msgspec.json.decode(await answer.read(), type=_List)
        self._there[path] = {item.metadata.name for item in listed.items}
        version = listed.metadata.resourceVersion
        while True:
            query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3000"}
            unlimited = aiohttp.ClientTimeout(total=None)
            async with self._session.get(path, params=query, timeout=unlimited) as answer:
                rest = b""
                async for chunk in answer.content.iter_any():
                    now = time.monotonic()
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        version = self._note(path, now, line)
                    self._changed.set()

    def _note(self, path: str, now: float, line: bytes) -> str:
        event = msgspec.json.decode(line, type=_Event)
        if event.type == "ERROR":
            raise RuntimeError(f"the watch of {path} ended: {bytes(event.object)[:300]!r}")
        seen = msgspec.json.decode(event.object, type=Seen)
        name = seen.metadata.name
        if event.type == "DELETED":
            self._there[path].discard(name)
        else:
            self._there[path].add(name)
            for state in self._states[path](seen):
                self._first.setdefault((state, name), now)
        return seen.metadata.resourceVersion
