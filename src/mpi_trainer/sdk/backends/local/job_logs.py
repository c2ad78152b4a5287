"""A job's log, read from its directory: chosen lines, with a mark where an attempt begins."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide.mpijob import backoff
from mpi_trainer.layout.hosts import launcher_name, worker_name
from mpi_trainer.local.jobs import logfile, store
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir
from mpi_trainer.sdk.backends.backend import Key, LogLine, LogQuery
from mpi_trainer.sdk.backends.local.observed import find, readable
from mpi_trainer.sdk.job.attempts import AttemptMarks

replace = msgspec.structs.replace

LOOK_SECONDS = 0.05
LINES_IN_A_ROW = 1000


async def lines(key: Key, query: LogQuery) -> AsyncGenerator[LogLine, None]:
    folder = find(key)
    wanted = _filter(query, key)
    with readable(key):
        made = folder.state().created
    reader = logfile.LogReader(folder.path)
    marks = _AttemptMarks(folder)
    try:
        over = not query.follow
        found = _tail(_lines(reader, wanted), query.tail)
        while True:
            for count, line in enumerate(found, 1):
                yield marks.marked(line)
                if count % LINES_IN_A_ROW == 0:
                    await asyncio.sleep(0)  # others in this loop want to run, or to end us
            if over:
                return
            await asyncio.sleep(LOOK_SECONDS)
            over, found = _over(folder, made), _lines(reader, wanted)
    finally:
        reader.close()


def _over(folder: JobDir, made: datetime) -> bool:
    """Whether nothing will come any more from the job that was created at `made`."""
    try:
        store.find(folder.namespace, folder.name)
        state = folder.state()
    except (store.NoSuchJob, FileNotFoundError):
        return True
    except Damaged:
        return not folder.alive()
    ended = conditions.finished(state.status.conditions) and not folder.alive()
    return ended or state.created != made


class _Filter(msgspec.Struct, frozen=True):
    pods: tuple[str, ...]
    rank: int | None
    since: float
    pattern: re.Pattern[str] | None
    attempt: int | None

    def takes(self, entry: logfile.LogEntry) -> bool:
        return (
            entry.pod in self.pods
            and self.attempt in (None, entry.attempt)
            and (self.rank is None or entry.rank == self.rank)
            and entry.time >= self.since
            and (self.pattern is None or self.pattern.search(entry.text) is not None)
        )


def _filter(query: LogQuery, key: Key) -> _Filter:
    return _Filter(
        pods=_writers(query, key),
        rank=query.rank,
        since=query.since.timestamp() if query.since else 0.0,
        pattern=query.pattern(),
        attempt=query.attempt,
    )


class _AttemptMarks:
    """The first line of every attempt but the first says so."""

    def __init__(self, folder: JobDir) -> None:
        self._folder = folder
        self._attempt = 1

    def marked(self, line: LogLine) -> LogLine:
        if line.attempt == self._attempt:
            return line
        self._attempt = line.attempt
        try:
            job, ended = self._folder.job(), self._folder.state().attempts
        except (FileNotFoundError, Damaged):
            return line
        mark = AttemptMarks(backoff.limit(job) + 1, ended).begins(line.attempt)
        return replace(line, notes=(mark,)) if mark else line


def _writers(query: LogQuery, key: Key) -> tuple[str, ...]:
    worker = None if query.launcher else query.worker
    with readable(key):
        train = find(key).settings().train
    if train is not None:
        from mpi_trainer.local.jobs import trainjob  # runtimes and policies: few jobs need them

        return trainjob.writers(train, worker)
    return (launcher_name(key.name) if worker is None else worker_name(key.name, worker),)


def _lines(reader: logfile.LogReader, wanted: _Filter) -> Iterator[LogLine]:
    lost = 0
    for gone, entry in reader.read():
        lost += gone
        if wanted.takes(entry):
            yield LogLine(
                time=datetime.fromtimestamp(entry.time, UTC),
                pod=entry.pod,
                stream="stderr" if entry.stream == "stderr" else "stdout",
                rank=entry.rank,
                text=entry.text,
                attempt=entry.attempt,
                lost=lost,
            )
            lost = 0


def _tail(lines: Iterator[LogLine], count: int | None) -> Iterator[LogLine]:
    return iter(deque(lines, maxlen=count)) if count is not None else lines
