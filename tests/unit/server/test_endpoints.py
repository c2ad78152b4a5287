"""What endpoints do where a backend is slow, or has more than one answer holds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.api import bounds
from mpi_trainer.api.yaml.load import JobFile
from mpi_trainer.sdk.backends.backend import JobCounts, JobTimes, JobView, Key, LogLine, LogQuery
from mpi_trainer.sdk.errors import JobNotFound, JobTimeout
from mpi_trainer.server import bodies, values
from mpi_trainer.server.endpoint import Call
from mpi_trainer.server.endpoints import checks, jobs, logs, plan
from mpi_trainer.server.problems import Refused

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = JobView("MPIJob", Key("a", "b"), "Running", JobCounts(), JobTimes(), {})


class SlowBackend:
    """Its delete never comes to an end; `left` is the job as it is found afterwards."""

    namespace = "a"

    def __init__(self, left: JobView | None) -> None:
        self._left = left

    async def delete(self, key: Key, seen: JobView | None = None) -> None:
        await asyncio.Event().wait()

    async def get(self, key: Key) -> JobView:
        if self._left is None:
            raise JobNotFound("it is gone")
        return self._left


def delete(left: JobView | None, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(jobs, "DELETE_SECONDS", 0.01)
    backend: Any = SlowBackend(left)
    call = Call(backend, path={"namespace": "a", "name": "b"})
    return asyncio.run(jobs.delete(call)).status


def test_a_deletion_that_takes_longer_than_a_call_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert delete(None, monkeypatch) == 204
    assert delete(replace(JOB, times=JobTimes(deleted=NOW)), monkeypatch) == 202
    with pytest.raises(JobTimeout, match="job a/b was not deleted within"):
        delete(JOB, monkeypatch)


class Lines:
    namespace = "a"

    def __init__(self, *texts: str) -> None:
        self._texts = texts
        self.query = LogQuery()

    async def logs(self, key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
        self.query = query
        for text in self._texts:
            yield LogLine(NOW, "b-launcher", "stdout", 0, text)


def read(backend: Any, **query: Any) -> values.LogLines:
    asked = Call(backend, path={"namespace": "a", "name": "b"}, query=logs.LogsQuery(**query))
    found = asyncio.run(logs.job_logs(asked)).value
    assert isinstance(found, values.LogLines)
    return found


def test_lines_are_cut_and_counted_so_that_an_answer_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = read(Lines("a", "b"))
    assert [one.text for one in whole.items] == ["a", "b"] and not whole.cut
    long = read(Lines("x" * 5_000_000))
    assert len(long.items[0].text) == bounds.LOG_LINE + 1 and long.cut
    last = read(Lines(*map(str, range(100))), tail=3)
    assert [one.text for one in last.items] == ["97", "98", "99"] and last.cut
    monkeypatch.setattr(logs, "ANSWER_BYTES", 10 * (256 + 4 * 100))
    some = read(Lines(*("y" * 100 for _ in range(50))))
    assert len(some.items) == 10 and some.cut


def test_a_callers_text_is_no_regular_expression() -> None:
    backend = Lines()
    read(backend, contains="(a+)+$")
    pattern = backend.query.pattern()
    assert pattern is not None and pattern.search("x(a+)+$") and not pattern.search("aaa")


@pytest.mark.parametrize("run", [plan.render, checks.test_file])
def test_a_large_file_is_read_beside_the_event_loop(
    run: Callable[[Call], Coroutine[Any, Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte of YAML takes seconds, for which everybody else would wait."""
    threads: list[threading.Thread] = []

    def noted(body: bytes, media_type: str) -> JobFile:
        threads.append(threading.current_thread())
        return JobFile(())

    monkeypatch.setattr(bodies, "job_file", noted)
    backend: Any = Lines()
    with pytest.raises(Refused):
        asyncio.run(run(Call(backend, path={"namespace": "a"}, body=b"#" * bounds.LOG_TAIL)))
    assert threads and threading.main_thread() not in threads
