"""The last lines of many pods: the newest of all, whatever their pods have written before."""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mpi_trainer.sdk.backends.backend import Key, LogLine, LogQuery
from mpi_trainer.sdk.backends.cluster import job_logs
from mpi_trainer.sdk.backends.cluster.last_lines import LEFT_OUT, LastLines

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def line(pod: str, second: int, text: str = "") -> LogLine:
    return LogLine(BEGAN + timedelta(seconds=second), pod, "stdout", None, text or f"{second}")


def last(logs: list[list[LogLine]], most: int, room: int | None = None) -> list[LogLine]:
    lines = LastLines(most, room)
    for log in logs:
        for one in log:
            lines.add(one)
        lines.end()
    return list(lines.given())


def test_they_are_the_newest_of_all_logs() -> None:
    rng = random.Random(7)
    for _ in range(50):
        logs = [
            [line(f"pod-{n}", second) for second in sorted(rng.choices(range(20), k=30))]
            for n in range(4)
        ]
        whole = sorted((one for log in logs for one in log), key=lambda one: one.time)
        assert last(logs, 25) == whole[-25:]
    assert last([[line("a", 1)]], 25) == [line("a", 1)]
    assert last([[], []], 25) == []


def test_where_they_are_too_long_the_first_that_is_left_says_so() -> None:
    found = last([[line("a", second, "x" * 10) for second in range(9)]], 5, 30)
    assert [one.time.second for one in found] == [6, 7, 8]
    assert [one.notes for one in found] == [(LEFT_OUT,), (), ()]
    (alone,) = last([[line("a", 1), line("a", 2, "x" * 100)]], 5, 30)
    assert len(alone.text) == 100


class _Pod:
    """With a log of 2 MiB."""

    silent, over, attempt = False, True, 1

    def __init__(self, name: str) -> None:
        self.name = name

    async def lines(self, *, follow: bool) -> AsyncGenerator[LogLine, None]:
        for second in range(200):
            yield line(self.name, second, f"{second} {self.name}" + "x" * 10_000)


def test_the_last_lines_of_many_pods_do_not_hold_the_logs_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def pods(*_: object) -> list[Any]:
        return [_Pod(f"pod-{n}") for n in range(30)]

    async def read() -> list[LogLine]:
        query = LogQuery(all_pods=True, tail=10_000, room=1 << 20)
        nobody: Any = None
        return [one async for one in job_logs.lines(nobody, Key("a", "b"), nobody, query)]

    monkeypatch.setattr(job_logs, "_new", pods)
    tracemalloc.start()
    try:
        found = asyncio.run(read())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found[-1].time.second == 199 % 60 and len(found) > 90
    assert peak < 8 << 20


def test_a_time_of_long_ago_is_asked_for_as_the_api_reads_it() -> None:
    """With a year of one digit it answers 400, as for a container that is about to start."""
    assert job_logs._text(datetime(1, 2, 3, tzinfo=UTC)) == "0001-02-03T00:00:00Z"
    assert job_logs._text(BEGAN + timedelta(microseconds=5)) == "2026-01-01T00:00:00Z"
