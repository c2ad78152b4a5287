"""A job's log, read from its directory: chosen lines, with a mark where an attempt begins."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from datetime import UTC, datetime

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.decide.mpijob import backoff
from mpi_trainer.layout.hosts import launcher_name, worker_name
from mpi_trainer.local.execute.settings import SubmittedTrainJob
from mpi_trainer.local.jobs import logfile, store
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir
from mpi_trainer.sdk.backends.backend import Key, LogLine, LogQuery
from mpi_trainer.sdk.backends.local.observed import find, readable
from mpi_trainer.sdk.backends.log_filter import LineFilter
from mpi_trainer.sdk.errors import JobError
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
        found = _there(folder, reader, query, wanted)
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
    attempt: int | None
    lines: LineFilter

    def takes(self, entry: logfile.LogEntry) -> bool:
        return (
            entry.pod in self.pods
            and self.attempt in (None, entry.attempt)
            and self.lines.takes(entry.pod, entry.rank, entry.time, entry.text)
        )


def _filter(query: LogQuery, key: Key) -> _Filter:
    return _Filter(_writers(query, key), query.attempt, LineFilter(query))


def _there(
    folder: JobDir, reader: logfile.LogReader, query: LogQuery, wanted: _Filter
) -> Iterator[LogLine]:
    """What is there already."""
    # The level of a line can be that of the line before, so levels are read forwards.
    if query.tail is not None and not query.level and (query.follow or not query.all_pods):
        return (_line(entry, lost) for lost, entry in reader.tail(query.tail, wanted.takes))
    return _tail(_pod_by_pod(folder, reader, query, wanted), query.tail)


def _pod_by_pod(
    folder: JobDir, reader: logfile.LogReader, query: LogQuery, wanted: _Filter
) -> Iterator[LogLine]:
    """What is there already: of all pods one after the other, the launcher's first."""
    if not query.all_pods or query.follow:
        yield from _lines(reader, wanted)
        return
    for pod in wanted.pods:
        once = logfile.LogReader(folder.path)
        try:
            yield from _lines(once, replace(wanted, pods=(pod,)))
        finally:
            once.close()


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
    if query.all_pods or query.pod:
        return _named(query.pod, key, _pods(key, train))
    if train is not None:
        from mpi_trainer.local.jobs import trainjob  # runtimes and policies: few jobs need them

        return trainjob.writers(train, worker)
    return (launcher_name(key.name) if worker is None else worker_name(key.name, worker),)


def _pods(key: Key, train: SubmittedTrainJob | None) -> tuple[str, ...]:
    """Every pod of the job, the launcher first."""
    if train is not None:
        from mpi_trainer.local.jobs import trainjob

        return trainjob.pods(train)
    with readable(key):
        workers = find(key).job().workers
    return (launcher_name(key.name), *(worker_name(key.name, n) for n in range(workers)))


def _named(pod: str, key: Key, pods: tuple[str, ...]) -> tuple[str, ...]:
    if pod and pod not in pods:
        raise JobError(f"job {key.name} has no pod {pod}", f"Its pods are {', '.join(pods)}.")
    return (pod,) if pod else pods


def _lines(reader: logfile.LogReader, wanted: _Filter) -> Iterator[LogLine]:
    lost = 0
    for gone, entry in reader.read():
        lost += gone
        if wanted.takes(entry):
            yield _line(entry, lost)
            lost = 0


def _line(entry: logfile.LogEntry, lost: int) -> LogLine:
    return LogLine(
        time=datetime.fromtimestamp(entry.time, UTC),
        pod=entry.pod,
        stream="stderr" if entry.stream == "stderr" else "stdout",
        rank=entry.rank,
        text=entry.text,
        attempt=entry.attempt,
        lost=lost,
    )


def _tail(lines: Iterator[LogLine], count: int | None) -> Iterator[LogLine]:
    return iter(deque(lines, maxlen=count)) if count is not None else lines
