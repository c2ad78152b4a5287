"""What holds for every call, whether it came by HTTP or by gRPC.

In this order: how many calls there are, the caller, their rate, whether the cluster knows them,
what was asked, the time limit.
Guarantee: every call that changes something leaves one line in the audit log, also one that was
refused or broken off; no token and no body gets into any log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from mpi_trainer.server import parameters, problems
from mpi_trainer.server.callers import Caller, Callers
from mpi_trainer.server.endpoint import CRUD_SECONDS, Answer, Call, Endpoint
from mpi_trainer.server.job_reads import CallerReads
from mpi_trainer.server.live.access import Reader
from mpi_trainer.server.live.endpoint import EventStream, LiveCall
from mpi_trainer.server.live.hub import Hub, LiveSettings
from mpi_trainer.server.live.values import Sent
from mpi_trainer.server.problems import Refused
from mpi_trainer.server.rates import Rate, RateLimit
from mpi_trainer.server.turns import Turns

AT_ONCE: Final = 500
EACH: Final = 100
"""of them, for one caller"""
SHARE: Final = 4
"""one person has at most this part of all calls and streams, with however many tokens"""
BROKEN_OFF: Final = 499
"""in the audit log: the caller did not wait for the answer"""
audit = logging.getLogger("mpi_trainer.server.audit")
log = logging.getLogger("mpi_trainer.server")


Observe = Callable[[Endpoint, int, float], None]
"""hears of every call that ended: its status and its seconds"""


class Asked(Protocol):
    """A call as it came in. Nothing of it is believed yet: each function may refuse it."""

    @property
    def namespace(self) -> str:
        """For the audit log, as `job`; empty where the call names none."""

    @property
    def job(self) -> str: ...

    def caller(self, callers: Callers) -> Caller: ...

    async def call(self, endpoint: Endpoint, caller: Caller) -> Call:
        """Within the time limit: what was sent may have to be waited for."""


class AskedLive(Protocol):
    """A live stream as it was asked for."""

    def caller(self, callers: Callers) -> Caller: ...

    async def live_call(self, stream: EventStream, caller: Caller, hub: Hub) -> LiveCall: ...


class Calls:
    """One for all ways into the server: a caller's calls count together."""

    def __init__(
        self,
        callers: Callers,
        rate: Rate | None = None,
        at_once: int = AT_ONCE,
        live: LiveSettings | None = None,
    ) -> None:
        self.callers = callers
        self.hub = Hub(live or LiveSettings())
        self._rates = RateLimit(rate or Rate())
        self._at_once = at_once
        self._running = 0
        self._each = Turns("calls", each=EACH, most=at_once)
        self._heavy = Turns("tests", each=1, most=20)
        self._of_persons = Turns("calls", each=max(EACH, at_once // SHARE), most=at_once)
        most, each = self.hub.settings.streams, self.hub.settings.each
        self._streams = Turns("live streams", each=max(each, most // SHARE), most=most)
        self.observe: Observe | None = None

    @property
    def running(self) -> int:
        return self._running

    async def answer(self, endpoint: Endpoint, asked: Asked) -> Answer:
        async with _timed(endpoint, self.observe) as result:
            answer = await self._admitted_answer(endpoint, asked)
            result.status = answer.status
            return answer

    async def _admitted_answer(self, endpoint: Endpoint, asked: Asked) -> Answer:
        if self._running >= self._at_once:
            raise _busy()
        self._running += 1
        try:
            caller = self.admitted(asked)
            turn = self._heavy.taken(caller.id) if endpoint.heavy else nullcontext()
            with self._each.taken(caller.id), turn:
                work = self._noted if endpoint.changes else self._answer
                return await work(endpoint, asked, caller)
        finally:
            self._running -= 1

    @asynccontextmanager
    async def events(
        self, stream: EventStream, asked: AskedLive
    ) -> AsyncIterator[tuple[Sent, AsyncGenerator[Sent, None]]]:
        """The first event, and those after it. Until the first one it is a call like others, with
        their time limit; then it goes on for as long as it is read, and its number counts."""
        async with self.streaming(asked) as caller:
            call = await asked.live_call(stream, caller, self.hub)
            async with aclosing(stream.run(call)) as events:
                async with asyncio.timeout(CRUD_SECONDS):
                    first = await anext(events)
                yield first, events

    @asynccontextmanager
    async def streaming(self, asked: AskedLive) -> AsyncIterator[Caller]:
        """Who asks for a stream, which counts while the block runs."""
        caller = self.admitted(asked)
        with self.hub.counted(caller.id):
            async with asyncio.timeout(CRUD_SECONDS):
                await caller.check()
            with self._streams.taken(caller.person):
                yield caller

    def admitted(self, asked: Asked | AskedLive) -> Caller:
        """Who asks, where they have not asked too often."""
        caller = asked.caller(self.callers)
        wait = self._rates.wait(caller.id, asyncio.get_running_loop().time())
        if wait:
            raise problems.too_many(wait)
        return caller

    async def _answer(self, endpoint: Endpoint, asked: Asked, caller: Caller) -> Answer:
        async with asyncio.timeout(endpoint.seconds):
            await caller.check()
            with self._of_persons.taken(caller.person):
                return await endpoint.run(await asked.call(endpoint, caller))

    async def _noted(self, endpoint: Endpoint, asked: Asked, caller: Caller) -> Answer:
        results: list[tuple[int, float]] = []
        try:
            async with _timed(endpoint, lambda _, *result: results.append(result)) as result:
                answer = await self._answer(endpoint, asked, caller)
                result.status = answer.status
                return answer
        finally:
            caller.reads.forget(caller.id)
            await _note(endpoint, asked, caller, results[0])


class _Result:
    """Of a call that has not ended yet: a fault of ours, until it is said otherwise."""

    status: int = HTTPStatus.INTERNAL_SERVER_ERROR


@asynccontextmanager
async def _timed(endpoint: Endpoint, observe: Observe | None) -> AsyncIterator[_Result]:
    """Tells what came of a call, in whatever way it ends."""
    loop, result = asyncio.get_running_loop(), _Result()
    began = loop.time()
    try:
        yield result
    except asyncio.CancelledError:
        result.status = BROKEN_OFF
        raise
    except Exception as error:
        found = problems.explained(error)
        result.status = found.status if found else HTTPStatus.INTERNAL_SERVER_ERROR
        raise
    finally:
        if observe is not None:
            observe(endpoint, int(result.status), loop.time() - began)


async def _note(
    endpoint: Endpoint, asked: Asked, caller: Caller, result: tuple[int, float]
) -> None:
    """Who did what, where, and what came of it."""
    status, seconds = result
    audit.info(
        "audit",
        extra={
            "user": await _user(caller, status),
            "action": endpoint.name.removesuffix("Short"),
            "kind": endpoint.kind,
            "namespace": asked.namespace,
            "job": asked.job,
            "status": status,
            "seconds": round(seconds, 3),
        },
    )


async def _user(caller: Caller, status: int) -> str:
    """Empty for somebody whom the cluster does not know, or cannot name now."""
    if status == HTTPStatus.UNAUTHORIZED:
        return ""
    try:
        async with asyncio.timeout(5.0):
            return await caller.user()
    except Exception as error:
        log.warning("cannot tell who called: %s", type(error).__name__)
        return ""


class Asks(Protocol):
    """What is called: an endpoint, or a stream."""

    @property
    def kind(self) -> str: ...

    @property
    def query(self) -> type[msgspec.Struct]: ...


def query_of(
    asks: Asks, path: Mapping[str, str], given: Sequence[tuple[str, str]]
) -> msgspec.Struct:
    """The parameters that were given, where they and the names in the path are sound."""
    parameters.check_names(path.items())
    query = parameters.query(asks.query, given)
    if namespace := getattr(query, "namespace", ""):
        parameters.check_names([("namespace", namespace)])
    return query


def call_of(endpoint: Endpoint, caller: Caller, *, query: object, path: dict[str, str]) -> Call:
    """Without a body; with the caller's rights, and for jobs of the endpoint's kind alone."""
    backend = caller.backend.of_kind(endpoint.kind) if endpoint.kind else caller.backend
    return Call(
        backend,
        endpoint.kind,
        path,
        query,
        now=datetime.now(UTC),
        prometheus=caller.prometheus,
        grafana=caller.grafana,
        reads=CallerReads(caller.reads, caller.id, endpoint.kind),
    )


def live_call_of(
    stream: Asks,
    caller: Caller,
    hub: Hub,
    *,
    query: object,
    path: dict[str, str],
    position: str,
) -> LiveCall:
    """As `call_of`."""
    return LiveCall(
        backend=caller.backend.of_kind(stream.kind) if stream.kind else caller.backend,
        kind=stream.kind,
        path=path,
        query=query,
        now=datetime.now(UTC),
        hub=hub,
        reader=Reader(caller.id, caller.backend, caller.expires),
        position=position,
        reads=CallerReads(caller.reads, caller.id, stream.kind),
    )


def _busy() -> Refused:
    found = problems.problem(503, "busy", "the server is busy", "Try again in a second.")
    return Refused(found, (("Retry-After", "1"),))
