"""What jobs wrote, as far as one answer holds: the last lines, at most so many and so large.

Lines are chosen by text, not by a regular expression: a caller's expression could keep the server
busy for hours.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from mpi_trainer.api import bounds
from mpi_trainer.sdk.backends.backend import LogLine, LogQuery
from mpi_trainer.server import values, views
from mpi_trainer.server.endpoint import Answer, Call

ANSWER_BYTES: Final = 8 * 1024 * 1024
Number = Annotated[int, msgspec.Meta(ge=0)]


class PodLogsQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`tail` counts lines from the end; `contains` is a text, not a regular expression; `level` is
    the least one that is taken."""

    tail: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    since: datetime | None = None
    until: datetime | None = None
    contains: str = ""
    level: Literal["debug", "info", "warning", "error", ""] = ""
    attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None


class LogsQuery(PodLogsQuery, frozen=True, rename="camel"):
    """Launcher and ranks, or one rank, one worker's own lines (its sshd), one pod, or all pods."""

    rank: Number | None = None
    worker: Number | None = None
    pod: str = ""
    all_pods: bool = False


class ShortPodLogsQuery(PodLogsQuery, frozen=True, rename="camel"):
    namespace: str = ""


class ShortLogsQuery(LogsQuery, frozen=True, rename="camel"):
    namespace: str = ""


SHORT: Final[dict[type[msgspec.Struct], type[msgspec.Struct]]] = {
    PodLogsQuery: ShortPodLogsQuery,
    LogsQuery: ShortLogsQuery,
}


async def job_logs(call: Call) -> Answer:
    asked: LogsQuery = call.query
    return await _lines(
        call,
        LogQuery(rank=asked.rank, worker=asked.worker, pod=asked.pod, all_pods=asked.all_pods),
    )


async def launcher_logs(call: Call) -> Answer:
    return await _lines(call, LogQuery(launcher=True))


async def worker_logs(call: Call) -> Answer:
    return await _lines(call, LogQuery(worker=int(call.path["index"])))


async def _lines(call: Call, whose: LogQuery) -> Answer:
    asked: PodLogsQuery = call.query
    lines = call.backend.logs(call.key, log_query(asked, whose, asked.tail))
    kept, cut = await _within(lines, asked.tail, ANSWER_BYTES)
    if call.text:
        return Answer("".join(f"{line}\n" for line in kept))
    return Answer(values.LogLines(views.alike(tuple(kept), tuple[values.LogLine, ...]), cut))


def log_query(asked: PodLogsQuery, whose: LogQuery, tail: int | None) -> LogQuery:
    """`whose` lines, as far as they were asked for."""
    return msgspec.structs.replace(
        whose,
        since=asked.since,
        until=asked.until,
        tail=tail,
        grep=re.escape(asked.contains) if asked.contains else None,
        level=asked.level,
        attempt=asked.attempt,
        held=bounds.HELD_OF_MANY,
        room=ANSWER_BYTES,
    )


def shortened(line: LogLine) -> tuple[LogLine, bool]:
    """The line, and whether its end was left out."""
    if len(line.text) <= bounds.LOG_LINE:
        return line, False
    text = f"{line.text[: bounds.LOG_LINE]}…"
    return msgspec.structs.replace(line, text=text), True


async def _within(
    lines: AsyncGenerator[LogLine, None], most: int, size: int
) -> tuple[deque[LogLine], bool]:
    """The last lines, and whether anything was left out. Memory never holds more than `size`."""
    kept: deque[LogLine] = deque()
    held, cut = 0, False
    async with aclosing(lines):
        async for line in lines:
            line, too_long = shortened(line)
            cut = cut or too_long
            kept.append(line)
            held += line_size(line)
            while len(kept) > most or held > size:
                held -= line_size(kept.popleft())
                cut = True
    return kept, cut


def line_size(line: LogLine) -> int:
    """Bytes that it takes in an answer, at most."""
    return 4 * len(line.text) + sum(4 * len(note) for note in line.notes) + 256


PATHS: Final = (
    ("/logs", "getLogsOf", "What launcher and ranks wrote", job_logs, LogsQuery),
    (
        "/logs/launcher",
        "getLauncherLogsOf",
        "What the launcher's pod wrote",
        launcher_logs,
        PodLogsQuery,
    ),
    (
        "/logs/worker/{index}",
        "getWorkerLogsOf",
        "What a worker's pod wrote",
        worker_logs,
        PodLogsQuery,
    ),
)
