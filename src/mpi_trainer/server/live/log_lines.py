"""A job's log as events: its last lines, and then every line as it comes.

Nothing is shared between callers. No more is read than the reader takes: a slow one is waited for,
and what a node removes meanwhile is said to be missing. Ends with `end` when the job has ended and
everything was sent. Lines are chosen by text, not by a regular expression of the caller.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Annotated, Final, Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.diagnose.log_levels import LevelFilter
from mpi_trainer.sdk.backends.backend import JobView, LogLine, LogQuery
from mpi_trainer.sdk.errors import JobNotFound
from mpi_trainer.server import values as answers
from mpi_trainer.server import views
from mpi_trainer.server.live import log_positions
from mpi_trainer.server.live.access import forbidden
from mpi_trainer.server.live.endpoint import LiveCall
from mpi_trainer.server.live.log_positions import Places, Position
from mpi_trainer.server.live.values import LiveLines, LogEnd, Sent

GATHER: Final = 0.1
"""seconds for lines that come together"""
BATCH_LINES: Final = 200
BATCH_BYTES: Final = 32 * 1024
TAIL_BYTES: Final = 1024 * 1024
_WAITING: Final = 64

replace = msgspec.structs.replace


class LiveLogsQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Launcher and ranks, or one rank, the launcher's pod alone, one worker's own lines (its sshd),
    one pod, or all pods. `tail` counts lines from the end to begin with; `contains` is a text, not
    a regular expression; `level` is the least one that is taken."""

    rank: Annotated[int, msgspec.Meta(ge=0)] | None = None
    worker: Annotated[int, msgspec.Meta(ge=0)] | None = None
    launcher: bool = False
    pod: str = ""
    all_pods: bool = False
    tail: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 1000
    contains: str = ""
    level: Literal["debug", "info", "warning", "error", ""] = ""
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Wanted:
    """Which lines, for one reading: the level of a line can be that of the line before."""

    def __init__(self, asked: LiveLogsQuery) -> None:
        self._contains = asked.contains
        self._level = LevelFilter(asked.level) if asked.level else None

    def takes(self, line: LogLine) -> bool:
        return (self._level is None or self._level.takes((line.pod, line.rank), line.text)) and (
            self._contains in line.text
        )


class Batch:
    """Lines that are sent together, and what goes before them."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.skipped = 0
        self.bytes = 0

    @property
    def full(self) -> bool:
        return len(self.lines) >= BATCH_LINES or self.bytes >= BATCH_BYTES

    def add(self, line: LogLine) -> None:
        self.skipped += line.lost
        self.lines.append(line)
        self.bytes += size(line)

    def sent(self, places: Places) -> Sent:
        items = views.alike(tuple(self.lines), tuple[answers.LogLine, ...])
        return Sent("lines", LiveLines(items, self.skipped), log_positions.written(places.now()))


async def log_lines(call: LiveCall) -> AsyncGenerator[Sent, None]:
    """Without a position the last lines first, as one event, also where there is none."""
    asked: LiveLogsQuery = call.query
    await _check(call)
    job = await call.backend.get(call.key)
    position = log_positions.read(call.position) if call.position else None
    wanted = Wanted(asked)
    if position is None or position.uid != job.uid:
        places = Places(job.uid)
        yield await _tail(call, places, wanted)
        position = places.now()
    else:
        # At once, so that who comes back knows that the stream is open.
        yield Sent("lines", LiveLines((), 0), call.position)
    async with aclosing(_followed(call, position, wanted)) as later:
        async for sent in later:
            yield sent
    yield Sent("end", LogEnd(await _last_state(call, job)))


async def _tail(call: LiveCall, places: Places, wanted: Wanted) -> Sent:
    """The last lines of what is there, as one event: who has only a part of it has no position, and
    gets all of it again."""
    asked: LiveLogsQuery = call.query
    kept: deque[LogLine] = deque()
    held = skipped = 0
    async with aclosing(call.backend.logs(call.key, _query(asked))) as lines:
        async for one in lines:
            line = bounded(one)
            places.take(line)
            skipped += line.lost
            if wanted.takes(line):
                kept.append(replace(line, lost=0))
                held += size(line)
            while kept and (len(kept) > asked.tail or held > TAIL_BYTES):
                held -= size(kept.popleft())
                skipped += 1
    await _check(call)
    items = views.alike(tuple(kept), tuple[answers.LogLine, ...])
    return Sent("lines", LiveLines(items, skipped), log_positions.written(places.now()))


async def _followed(
    call: LiveCall, position: Position, wanted: Wanted
) -> AsyncGenerator[Sent, None]:
    """Every line behind the position."""
    places = Places(position.uid, position)
    coming: asyncio.Queue[LogLine | None] = asyncio.Queue(_WAITING)
    reading = asyncio.create_task(_read(call, position, coming))
    try:
        over = False
        while not over:
            batch = Batch()
            over = await _fill(batch, coming, call, (places, wanted))
            await _check(call)
            if batch.lines:
                yield batch.sent(places)
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(call: LiveCall, position: Position, coming: asyncio.Queue[LogLine | None]) -> None:
    query = replace(_query(call.query), follow=True, since=position.since)
    try:
        async with aclosing(call.backend.logs(call.key, query)) as lines:
            async for line in lines:
                await coming.put(bounded(line))
    except Exception:
        await coming.put(None)
        raise
    # Not where it is cancelled: nobody may be there to make room.
    await coming.put(None)


async def _fill(
    batch: Batch,
    coming: asyncio.Queue[LogLine | None],
    call: LiveCall,
    to: tuple[Places, Wanted],
) -> bool:
    """Waits for a line and takes those that come soon after it; whether the log has ended."""
    places, wanted = to
    loop = asyncio.get_running_loop()
    until = loop.time() + call.reader.patience(call.hub.access.seconds)
    while not batch.full:
        if coming.empty():
            try:
                async with asyncio.timeout_at(until):
                    line = await coming.get()
            except TimeoutError:
                return False
        else:
            line = coming.get_nowait()
        for new in places.rest() if line is None else _chosen(line, places, wanted):
            if not batch.lines:
                until = loop.time() + GATHER
            batch.add(new)
        if line is None:
            return True
        if loop.time() >= until:
            return False
    return False


def _chosen(line: LogLine, places: Places, wanted: Wanted) -> list[LogLine]:
    taken, new = wanted.takes(line), places.take(line)
    if len(new) > 1:
        return [one for one in new if wanted.takes(one)]
    return new if taken else []


def _query(asked: LiveLogsQuery) -> LogQuery:
    """Level and text are looked for here: a position counts lines whatever is in them."""
    return LogQuery(
        rank=asked.rank,
        worker=asked.worker,
        launcher=asked.launcher,
        pod=asked.pod,
        all_pods=asked.all_pods,
        attempt=asked.attempt,
        held=bounds.HELD_OF_MANY,
    )


async def _check(call: LiveCall) -> None:
    """Raises where the right is gone; asks at most once in `review` seconds."""
    if not await call.hub.access.read_logs(call.reader, call.key.namespace):
        raise forbidden("get pods/log", call.key.namespace)


async def _last_state(call: LiveCall, job: JobView) -> answers.State:
    with suppress(JobNotFound):
        found = await call.backend.get(call.key)
        job = found if found.uid == job.uid else job
    state: answers.State = msgspec.convert(job.state, answers.State)
    return state


def bounded(line: LogLine) -> LogLine:
    """A long one is cut, and says so."""
    if len(line.text) <= bounds.LOG_LINE:
        return line
    left = len(line.text) - bounds.LOG_LINE
    return replace(line, text=f"{line.text[: bounds.LOG_LINE]}… ({left} characters are left out)")


def size(line: LogLine) -> int:
    """Bytes that it takes in an answer, at most."""
    return 4 * len(line.text) + sum(4 * len(note) for note in line.notes) + 256
