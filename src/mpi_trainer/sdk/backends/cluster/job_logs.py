"""A job's log: the lines of its launchers, attempt after attempt, or those of one worker.

With `follow` it waits for pods that are not there yet and goes on until the job has ended or is
gone, over suspensions and new attempts. Of an attempt whose pod is gone there are the last lines
that the controller has kept in the job. The first line of a later attempt says so, and a line
before which others are missing says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from mpi_trainer.api.kinds.annotations import ATTEMPT
from mpi_trainer.api.kinds.labels import restart_attempt
from mpi_trainer.decide import history
from mpi_trainer.decide.history import Attempt, History
from mpi_trainer.diagnose.rank_lines import Line, RankLines
from mpi_trainer.kube import lists
from mpi_trainer.kube.errors import ApiError, NotFound
from mpi_trainer.kube.resources import PODS
from mpi_trainer.sdk.backends.backend import Key, LogLine, LogQuery
from mpi_trainer.sdk.backends.cluster import observed
from mpi_trainer.sdk.backends.cluster.connections import ApiServer
from mpi_trainer.sdk.backends.cluster.find import FoundJob, find
from mpi_trainer.sdk.backends.cluster.kinds import Kind
from mpi_trainer.sdk.backends.cluster.last_lines import LastLines
from mpi_trainer.sdk.backends.cluster.log_position import LogEntry
from mpi_trainer.sdk.backends.cluster.pod_logs import PodLog
from mpi_trainer.sdk.backends.log_filter import LineFilter
from mpi_trainer.sdk.job.attempts import AttemptMarks

FIRST_LOOK: Final = 0.25
SLOWEST_LOOK: Final = 5.0


MISSING: Final = (
    "lines before this one are missing: the node has removed them, or the container was restarted"
)


class _Filter(msgspec.Struct, frozen=True):
    role: str
    index: int | None
    pod: str
    all_pods: bool
    since: datetime | None
    attempt: int | None
    lines: LineFilter
    held: int

    def takes(self, line: LogLine) -> bool:
        return self.lines.takes(line.pod, line.rank, line.time.timestamp(), line.text)

    def reads(self, pod: observed.Pod, attempt: int, headless: bool) -> bool:
        if self.attempt not in (None, attempt):
            return False
        if self.all_pods or self.pod:
            return self.pod in ("", pod.name)
        if headless and self.role == "launcher":
            return True
        numbered = self.index is None or (pod.numbered and pod.index == self.index)
        return pod.role == self.role and numbered


class _Reader:
    """One pod's log as lines with ranks; `mark` goes before the first of them. `place` is its own
    among the pods of an attempt: the launcher is first."""

    silent = False

    def __init__(self, server: ApiServer, speaker: NumberedPod, wanted: _Filter, mark: str) -> None:
        pod = speaker.pod
        since = _text(wanted.since) if wanted.since else ""
        self.log = PodLog(server, pod, since, wanted.held)
        self._pod = pod
        self.place = -1 if pod.role == "launcher" else pod.index
        self.attempt = speaker.attempt
        self._stream = RankLines(pod.name, pod.role, "stdout", wanted.held)
        self._wanted = wanted
        self.notes = _noted(mark)
        self._last = datetime.fromtimestamp(0, UTC)

    @property
    def over(self) -> bool:
        return self.log.over

    async def lines(self, *, follow: bool) -> AsyncGenerator[LogLine, None]:
        try:
            async with aclosing(self.log.follow() if follow else self.log.read()) as entries:
                async for entry in entries:
                    for line in self._made(entry):
                        yield line
        except NotFound:
            self.log.over = True
        if self.log.over or self._pod.over:
            for line in self._shown(self._stream.close(), self._last):
                yield line

    def _made(self, entry: LogEntry) -> Iterator[LogLine]:
        if entry.gap and MISSING not in self.notes:
            self.notes += (MISSING,)
        self._last = entry.time
        yield from self._shown(self._stream.feed(entry.text + b"\n"), entry.time)

    def _shown(self, said: list[Line], time: datetime) -> Iterator[LogLine]:
        for one in said:
            line = LogLine(
                time=time,
                pod=self._pod.name,
                stream="stdout",
                rank=one.rank,
                text=one.text,
                attempt=self.attempt,
                notes=self.notes,
            )
            if self._wanted.takes(line):
                self.notes = ()
                yield line


class _Kept:
    """The last lines of an attempt whose pod is gone."""

    place = -1

    def __init__(self, one: Attempt, wanted: _Filter, mark: str) -> None:
        self.attempt = one.attempt
        self.silent = not one.words
        self._ended = one
        self._wanted = wanted
        self.notes = _noted(mark)
        self.over = False

    async def lines(self, *, follow: bool) -> AsyncGenerator[LogLine, None]:
        self.over = True
        for line in self._all():
            if self._wanted.takes(line):
                yield msgspec.structs.replace(line, notes=self.notes)
                self.notes = ()

    def _all(self) -> Iterator[LogLine]:
        one = self._ended
        time = one.ended or datetime.fromtimestamp(0, UTC)
        for said in one.words:
            stream = RankLines(said.pod, "launcher", "stdout")
            for line in (*stream.feed(said.text.encode() + b"\n"), *stream.close()):
                yield LogLine(
                    time=time,
                    pod=said.pod,
                    stream="stdout",
                    rank=line.rank,
                    text=line.text,
                    attempt=one.attempt,
                )


Source = _Reader | _Kept
Readers = dict[str, Source]
"""by the uid of a pod, or by the attempt whose pod is gone"""


def _text(time: datetime) -> str:
    """As the API takes it: a year has four digits, which strftime does not always give."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _noted(mark: str) -> tuple[str, ...]:
    return (mark,) if mark else ()


async def lines(
    server: ApiServer, key: Key, job: FoundJob, query: LogQuery
) -> AsyncGenerator[LogLine, None]:
    """`job` is as it was a moment ago."""
    wanted = _filter(query)
    readers: Readers = {}
    last = LastLines(query.tail or 0, query.room)
    for reader in await _new(server, key, job, wanted, readers):
        async with aclosing(reader.lines(follow=False)) as found:
            async for line in found:
                if query.tail is None:
                    yield line
                else:
                    last.add(line)
        last.end()
    for line in last.given():
        yield line
    if not query.follow:
        return
    async with aclosing(_followed(server, key, job, wanted, readers)) as later:
        async for line in later:
            yield line


async def speaks(server: ApiServer, key: Key, job: FoundJob, query: LogQuery) -> bool:
    """Whether a pod is there whose lines the query asks for."""
    wanted, headless = _filter(query), job.kind.headless(job.data)
    pods = numbered_pods(await pods_of(server, key, job.kind), history.read(job.view.annotations))
    return any(wanted.reads(one.pod, one.attempt, headless) for one in pods)


async def _followed(
    server: ApiServer, key: Key, job: FoundJob, wanted: _Filter, readers: Readers
) -> AsyncGenerator[LogLine, None]:
    states = server.watches.follow(job.kind.resource, key)
    changed = asyncio.ensure_future(anext(states))
    pumps = _Pumps()
    over, pause = False, FIRST_LOOK
    try:
        while True:
            if changed.done():
                found, pause = changed.result(), FIRST_LOOK
                over = found is None or found["metadata"]["uid"] != job.uid
                if found is not None and not over:
                    job = FoundJob(job.kind, dict(found))
                    over = job.finished
                changed = asyncio.ensure_future(anext(states))
            ended = over
            await _new(server, key, job, wanted, readers)
            open_ = [reader for reader in readers.values() if not reader.over]
            # A launcher's lines come before those of its next attempt; nodes speak at once.
            for reader in open_ if job.kind.headless(job.data) else open_[:1]:
                pumps.start(reader)
            while (line := await pumps.line(changed, pause)) is not None:
                pause = FIRST_LOOK
                yield line
            if ended and not pumps.busy and all(reader.over for reader in open_):
                return
            pause = FIRST_LOOK if over else min(2 * pause, SLOWEST_LOOK)
    finally:
        changed.cancel()
        await asyncio.gather(changed, pumps.stop(), return_exceptions=True)
        await states.aclose()


class _Pumps:
    """The lines of several readers, as they come."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[LogLine] = asyncio.Queue(maxsize=1000)
        self._tasks: dict[Source, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        return not self._lines.empty() or any(not task.done() for task in self._tasks.values())

    def start(self, reader: Source) -> None:
        """Follows the reader's pod, unless that goes on already."""
        before = self._tasks.get(reader)
        if before is None or before.done():
            self._tasks[reader] = asyncio.create_task(self._pump(reader))

    async def line(self, change: asyncio.Future[Any], seconds: float) -> LogLine | None:
        """The next one; None at a change or after so long, so that nobody asks without a pause."""
        if not self._lines.empty():
            return self._lines.get_nowait()
        coming = asyncio.ensure_future(self._lines.get())
        both = {coming, change}
        await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks.values():
            if task.done():
                task.result()
        if coming.done():
            return coming.result()
        coming.cancel()
        return None

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _pump(self, reader: Source) -> None:
        async with aclosing(reader.lines(follow=True)) as entries:
            async for line in entries:
                await self._lines.put(line)


async def _new(
    server: ApiServer, key: Key, job: FoundJob, wanted: _Filter, readers: Readers
) -> list[Source]:
    """Readers for what has come since, oldest attempt first."""
    pods, headless = await pods_of(server, key, job.kind), job.kind.headless(job.data)
    ended = await _ended(server, key, job, [p for p in pods if p.metadata.uid not in readers])
    marks = AttemptMarks(job.most_attempts, ended)
    speakers = [s for s in numbered_pods(pods, ended) if wanted.reads(s.pod, s.attempt, headless)]
    fresh: dict[str, Source] = {
        speaker.pod.metadata.uid: _Reader(server, speaker, wanted, marks.begins(speaker.attempt))
        for speaker in speakers
        if speaker.pod.metadata.uid not in readers
    }
    if wanted.role == "launcher" and not wanted.pod:
        known = {one.attempt for one in (*speakers, *readers.values())}
        fresh |= {
            f"attempt {one.attempt}": _Kept(one, wanted, marks.kept(one))
            for one in ended
            if one.attempt not in known and wanted.attempt in (None, one.attempt)
        }
    made = dict(sorted(fresh.items(), key=lambda item: (item[1].attempt, item[1].place)))
    readers |= made
    _hand_on(made.values())
    return list(made.values())


async def _ended(
    server: ApiServer, key: Key, job: FoundJob, fresh: Iterable[observed.Pod]
) -> History:
    """Attempts that have ended. They are read anew where a pod is of a later attempt than the job
    tells of: its controller wrote them before it made the pod, and the watch is behind."""
    ended = history.read(job.view.annotations)
    last = max((one.attempt for one in ended), default=0)
    if any(ATTEMPT in pod.metadata.annotations and pod.attempt > last + 1 for pod in fresh):
        with suppress(NotFound):
            ended = history.read((await find(server, key)).view.annotations)
    return ended


def _hand_on(sources: Iterable[Source]) -> None:
    """What is to be told of an attempt without a line stands before the next attempt's."""
    waiting: tuple[str, ...] = ()
    for source in sources:
        source.notes = (*waiting, *source.notes)
        waiting = source.notes if source.silent else ()


async def pods_of(server: ApiServer, key: Key, kind: Kind) -> tuple[observed.Pod, ...]:
    async def once() -> lists.Page[observed.Pod]:
        return await lists.list_all(
            server.client,
            PODS,
            observed.Pod,
            namespace=key.namespace,
            labels=kind.selector(key),
        )

    try:
        return (await server.outages.retried(once, again=True)).items
    except ApiError:
        server.outages.note_answer()
        raise


def _filter(query: LogQuery) -> _Filter:
    worker = query.worker is not None and not query.launcher
    return _Filter(
        role="worker" if worker else "launcher",
        index=query.worker if worker else None,
        pod=query.pod,
        all_pods=query.all_pods,
        since=query.since,
        attempt=query.attempt,
        lines=LineFilter(query),
        held=query.held,
    )


class NumberedPod(msgspec.Struct, frozen=True):
    pod: observed.Pod
    attempt: int


def numbered_pods(pods: Iterable[observed.Pod], ended: History) -> list[NumberedPod]:
    """Oldest attempt first, and within one the oldest pod.

    Our MPIJobs' pods carry the number. Where another controller made them, or JobSet, launchers
    are counted in the order of their making, after the attempts that the job itself remembers.
    """
    remembered = {one.pod: one.attempt for one in ended if one.pod}
    last = max((one.attempt for one in ended), default=0)
    found: list[NumberedPod] = []
    for pod in sorted(pods, key=lambda p: p.metadata.creation_timestamp):
        if ATTEMPT in pod.metadata.annotations:
            number = pod.attempt
        elif pod.role == "launcher":
            number = remembered.get(pod.name) or last + 1
            last = max(last, number)
        else:
            number = restart_attempt(pod.metadata.labels) + 1
        found.append(NumberedPod(pod, number))
    return sorted(found, key=lambda one: one.attempt)
