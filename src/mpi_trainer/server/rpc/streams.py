"""What a job does and writes, as streams of messages.

Nothing is read ahead of a slow reader but what is being sent. Guarantee: nobody is told anything
much later than a minute after their right to it was taken away, or after their login has expired.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Annotated, Final, Generic, TypeVar

import msgspec

from mpi_trainer.api.errors import INVALID, FieldError
from mpi_trainer.sdk.backends.backend import LogLine, LogQuery
from mpi_trainer.sdk.errors import JobNotFound
from mpi_trainer.server import views
from mpi_trainer.server.endpoints import logs
from mpi_trainer.server.live.access import forbidden
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.problems import bad_request
from mpi_trainer.server.rpc.messages import filled
from mpi_trainer.server.rpc.v1 import mpijobs_pb2 as v1

CHECK_SECONDS: Final = 5.0
"""between two looks at the caller's rights, which the hub asks for once a minute"""
TOGETHER_SECONDS: Final = 0.02
"""how long a line waits for others, to be sent with them"""
MOST_LINES: Final = 500
MOST_BYTES: Final = 256 * 1024
_WHOSE: Final = ("rank", "worker", "launcher", "pod", "allPods")
T = TypeVar("T")


class WatchQuery(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""


class FollowQuery(logs.LogsQuery, frozen=True, rename="camel"):
    """As of REST, but that all lines come where no `tail` is given."""

    tail: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None  # type: ignore[assignment]
    launcher: bool = False
    follow: bool = False
    namespace: str = ""


async def watch_status(call: LiveCall) -> AsyncGenerator[v1.WatchMPIJobStatusResponse, None]:
    """Ends when the job has ended or is gone."""
    key = call.key
    gone = v1.WatchMPIJobStatusResponse(deleted=v1.JobKey(namespace=key.namespace, name=key.name))
    finished = False
    async with aclosing(paced(call.backend.watch(key), _sees(call))) as changes:
        async for (job,) in changes:
            finished = job.finished
            try:
                found = views.status(await call.backend.details(key))
            except JobNotFound:
                break
            yield v1.WatchMPIJobStatusResponse(status=filled(v1.MPIJobStatus, found))
    if finished:
        return
    try:
        await call.backend.get(key)
    except JobNotFound:
        yield gone


async def job_logs(call: LiveCall) -> AsyncGenerator[v1.GetMPIJobLogsResponse, None]:
    asked: FollowQuery = call.query
    given = {name: getattr(asked, field) for name, field in _fields().items()}
    chosen = [
        name for name, value in given.items() if value not in (None, "") and value is not False
    ]
    if len(chosen) > 1:
        rule = f"cannot be given together with {chosen[0]}"
        raise bad_request([FieldError((chosen[1],), INVALID, rule=rule, remedy="give one of them")])
    whose = LogQuery(
        rank=asked.rank,
        worker=asked.worker,
        launcher=asked.launcher,
        pod=asked.pod,
        all_pods=asked.all_pods,
        follow=asked.follow,
    )
    lines = call.backend.logs(call.key, logs.log_query(asked, whose, asked.tail))
    async with aclosing(paced(lines, _reads_logs(call), MOST_LINES, logs.line_size)) as batches:
        async for batch in batches:
            yield _lines(batch)


def _fields() -> dict[str, str]:
    known = {one.encode_name: one.name for one in msgspec.structs.fields(FollowQuery)}
    return {name: known[name] for name in _WHOSE}


def _lines(batch: list[LogLine]) -> v1.GetMPIJobLogsResponse:
    """Not by `filled`: there are many."""
    made = v1.GetMPIJobLogsResponse()
    for line in batch:
        short, cut = logs.shortened(line)
        one = made.lines.add(
            pod=line.pod,
            stream=line.stream,
            rank=line.rank,
            text=short.text,
            attempt=line.attempt,
            lost=line.lost,
            notes=line.notes,
            cut=cut,
        )
        one.time.FromDatetime(line.time)
    return made


def _sees(call: LiveCall) -> Callable[[], Awaitable[None]]:
    async def check() -> None:
        if not await call.hub.access.watch_jobs(call.reader, call.kind, call.namespace):
            raise forbidden(f"watch {call.kind.lower()}s", call.namespace)

    return check


def _reads_logs(call: LiveCall) -> Callable[[], Awaitable[None]]:
    async def check() -> None:
        if not await call.hub.access.read_logs(call.reader, call.namespace):
            raise forbidden("read logs of pods", call.namespace)

    return check


async def paced(
    source: AsyncGenerator[T, None],
    check: Callable[[], Awaitable[None]],
    most: int = 1,
    size: Callable[[T], int] = lambda _: 0,
) -> AsyncGenerator[list[T], None]:
    """What comes at about the same time together, `most` at once. `check` is asked every few
    seconds, also while nothing comes, and ends everything by raising."""
    clock = asyncio.get_running_loop().time
    buffer = _Buffer(most, size)
    pump = asyncio.ensure_future(buffer.fill(source))
    checked = clock()
    try:
        while True:
            await _set(buffer.begun, max(0.0, checked + CHECK_SECONDS - clock()))
            if buffer.items and not pump.done():
                await _set(buffer.full, TOGETHER_SECONDS)
            if clock() >= checked + CHECK_SECONDS:
                await check()
                checked = clock()
            if taken := buffer.take():
                yield taken
            elif pump.done():
                pump.result()
                return
    finally:
        pump.cancel()
        await asyncio.wait({pump})
        await source.aclose()


class _Buffer(Generic[T]):
    """Filled by a task until it holds enough, and emptied by whoever sends."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.items: list[T] = []
        self.begun, self.full, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._most, self._size, self._held, self._ended = most, size, 0, False

    async def fill(self, source: AsyncGenerator[T, None]) -> None:
        try:
            async for item in source:
                self.items.append(item)
                self._held += self._size(item)
                self.begun.set()
                if len(self.items) >= self._most or self._held >= MOST_BYTES:
                    self._room.clear()
                    self.full.set()
                    await self._room.wait()
        finally:
            self._ended = True
            self.begun.set()
            self.full.set()

    def take(self) -> list[T]:
        taken, self.items, self._held = self.items, [], 0
        if not self._ended:
            self.begun.clear()
            self.full.clear()
        self._room.set()
        return taken


async def _set(event: asyncio.Event, seconds: float) -> None:
    """Waits until then at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
