"""The Backend of this machine, over `local.jobs.store`.

Files are the truth: every call reads them afresh, so any number of clients in any number of
processes see the same. Following means looking often; a look at a quiet job costs one `stat`.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.annotations import RESTARTS
from mpi_trainer.api.kinds.mpijob import MPIJob, to_wire
from mpi_trainer.api.kinds.runtime import Runtime
from mpi_trainer.api.kinds.trainjob import TrainJob
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute.prepare import LocalRun, prepare, prepare_train
from mpi_trainer.local.execute.settings import LocalSettings, Train, here
from mpi_trainer.local.jobs import logfile, shipped_runtimes, store, trainjob, trainjob_status
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir, PodState, State
from mpi_trainer.local.mpi import distributions
from mpi_trainer.local.pods import inside
from mpi_trainer.sdk.backends.backend import (
    EventInfo,
    JobDetails,
    JobSummary,
    Key,
    LogLine,
    LogQuery,
    PodInfo,
    RankInfo,
)
from mpi_trainer.sdk.errors import JobError, JobExists, JobNotFound
from mpi_trainer.sdk.job.attempts import Marks

replace = msgspec.structs.replace

LOOK_SECONDS = 0.05
LINES_IN_A_ROW = 1000
DAMAGED = "JobDirectoryDamaged"


class LocalBackend:
    """Jobs of this machine. `settings` None takes the caller's at every submission."""

    def __init__(self, settings: LocalSettings | None = None) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        return "local"

    @property
    def namespace(self) -> str:
        return "default"

    async def create(self, job: MPIJob) -> MPIJob:
        return await asyncio.to_thread(self.create_now, job)

    async def train(self, job: TrainJob) -> MPIJob | None:
        runtime = shipped_runtimes.runtime(job.spec.runtime_ref.name)
        return None if runtime is None else await self.create_train(job, runtime)

    async def create_train(self, job: TrainJob, runtime: Runtime) -> MPIJob:
        """Submits a TrainJob with its runtime; the job that stands in for it, as stored."""
        settings = self._settings or here()
        return await asyncio.to_thread(_submit, lambda: prepare_train(job, runtime, settings))

    def create_now(self, job: MPIJob) -> MPIJob:
        settings = self._settings or here()
        return _submit(lambda: prepare(job, settings))

    async def ship(self, job: MPIJob, workdir: str) -> MPIJob:
        settings = _inside(self._settings or here(), workdir)
        return await LocalBackend(settings).create(job)

    async def get(self, key: Key) -> MPIJob:
        return self.get_now(key)

    async def manifest(self, key: Key) -> dict[str, Any]:
        """The job as its own API has it, a TrainJob as a TrainJob."""
        job, train = self.get_now(key), _train(key)
        return to_wire(job) if train is None else trainjob_status.wire(train, job)

    def get_now(self, key: Key) -> MPIJob:
        return _job(_find(key), key)

    async def details(self, key: Key) -> JobDetails:
        return await asyncio.to_thread(self.details_now, key)

    def details_now(self, key: Key) -> JobDetails:
        folder = _find(key)
        with _readable(key):
            job, state, events = folder.job(), folder.state(), folder.events()
        return JobDetails(
            job=job,
            pods=tuple(_pod(p) for p in state.pods),
            ranks=tuple(_ranks(state)),
            events=tuple(EventInfo(e.time, e.type, e.reason, e.message) for e in events),
            progress=state.progress,
            waits_for=state.waits_for,
            attempts=state.attempts,
            missing=state.missing.words(),
        )

    async def list(self, namespace: str | None = None) -> Sequence[JobSummary]:
        return self.list_now(namespace)

    def list_now(self, namespace: str | None = None) -> Sequence[JobSummary]:
        with _told():
            found = [_summary(folder, state) for folder, state in store.states(namespace)]
        return sorted(found, key=lambda job: job.created, reverse=True)

    async def watch(self, key: Key) -> AsyncIterator[MPIJob]:
        last: Any = None
        while True:
            try:
                job = self.get_now(key)
            except JobNotFound:
                if last is None:
                    raise
                return
            if job.status != last:
                last = job.status
                yield job
            if conditions.finished(job.status.conditions):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def logs(self, key: Key, query: LogQuery) -> AsyncIterator[LogLine]:
        folder = _find(key)
        wanted = _filter(query, key)
        with _readable(key):
            made = folder.state().created
        reader = logfile.Reader(folder.path)
        begun = _Begun(folder)
        try:
            over = not query.follow
            lines = _tail(_lines(reader, wanted), query.tail)
            while True:
                for count, line in enumerate(lines, 1):
                    yield begun.marked(line)
                    if count % LINES_IN_A_ROW == 0:
                        await asyncio.sleep(0)  # others in this loop want to run, or to end us
                if over:
                    return
                await asyncio.sleep(LOOK_SECONDS)
                over, lines = _over(folder, made), _lines(reader, wanted)
        finally:
            reader.close()

    async def suspend(self, key: Key) -> MPIJob:
        return self._suspend(key, True)

    async def resume(self, key: Key) -> MPIJob:
        return self._suspend(key, False)

    def _suspend(self, key: Key, wanted: bool) -> MPIJob:
        folder = _find(key)
        if conditions.finished(_job(folder, key).status.conditions):
            verb = "suspended" if wanted else "resumed"
            raise JobError(
                f"job {key} has ended and cannot be {verb}",
                f"Run it again: `odh mpijob restart {key.typed}`.",
            )
        with _readable(key):
            return store.edit(folder, lambda job: _with_suspend(job, wanted))

    async def restart(self, key: Key) -> MPIJob:
        if not conditions.finished(self.get_now(key).status.conditions):
            await self.suspend(key)
            if await self._empty(key):
                return await self.resume(key)
        folder = _find(key)
        with _readable(key):
            return await asyncio.to_thread(store.restart, folder, _again)

    async def _empty(self, key: Key) -> bool:
        """Whether a suspended job gave up its pods; False where it came to its end before."""
        while True:
            job = self.get_now(key)
            if conditions.finished(job.status.conditions):
                return False
            if not job.spec.run_policy.suspend:
                return True  # somebody else restarted it, and it runs again
            with _readable(key):
                held = _find(key).state().pods
            if conditions.holds(job.status.conditions, conditions.SUSPENDED) and not held:
                return True
            await asyncio.sleep(LOOK_SECONDS)

    async def delete(self, key: Key) -> None:
        await asyncio.to_thread(store.remove, _find(key))

    async def run_in(self, key: Key, pod: str, command: Sequence[str]) -> int:
        return await asyncio.to_thread(inside.run_in, _running_pod(key, pod), command)

    async def fetch(self, key: Key, path: str, destination: str) -> None:
        await asyncio.to_thread(self._fetch, key, path, Path(destination))

    def _fetch(self, key: Key, path: str, destination: Path) -> None:
        folder = _find(key)
        with _readable(key):
            job, settings, pods = folder.job(), folder.settings(), folder.state().pods
        if not path.startswith("/"):
            path = f"{settings.cwd}/{path}"
        launcher = [p for p in pods if p.role == "launcher" and p.phase == "Running"]
        if launcher:
            inside.copy_out(launcher[0], path, destination)
        else:
            inside.copy(_kept(job, settings, path), path, destination)

    async def places(self, key: Key) -> dict[int, str]:
        return {one.rank: one.pod for one in (await self.details(key)).ranks}

    async def stacks(self, key: Key) -> dict[int, str]:
        folder = _find(key)
        with _readable(key):
            pods = folder.state().pods
        return await asyncio.to_thread(inside.stacks, pods)

    async def prune(self, namespace: str | None, older_than_seconds: float) -> Sequence[Key]:
        gone = []
        with _told():
            await asyncio.to_thread(store.clear_leftovers)
            found = [*store.states(namespace)]
        for folder, state in found:
            ended = state.status.completion_time if isinstance(state, State) else None
            if ended and (datetime.now(UTC) - ended).total_seconds() >= older_than_seconds:
                await asyncio.to_thread(store.remove, folder)
                gone.append(Key(folder.namespace, folder.name))
        return gone


def _submit(prepared: Callable[[], LocalRun]) -> MPIJob:
    with _told():
        local = prepared()
        local.order()
        distributions.install(local.distribution, lambda seconds: None)
    try:
        with _told():
            return store.submit(local.job, local.settings)
    except store.JobTaken as error:
        key = Key(local.job.namespace, local.job.name)
        raise JobExists(
            f"job {key} exists already",
            f"Choose another name, or remove it: `odh mpijob delete {key.typed}`.",
        ) from error


@contextmanager
def _told() -> Iterator[None]:
    """What is wrong on this machine, as an error of the SDK."""
    try:
        yield
    except LocalError as error:
        raise JobError(error.problem, error.hint) from error


def _train(key: Key) -> Train | None:
    with _readable(key):
        return _find(key).settings().train


def _inside(settings: LocalSettings, workdir: str) -> LocalSettings:
    return replace(settings, cwd=str(Path(workdir).resolve()))


def _find(key: Key) -> JobDir:
    try:
        with _told():
            return store.find(key.namespace, key.name)
    except store.NoSuchJob as error:
        raise JobNotFound(
            f"there is no job {key} on this machine", "See which there are: `odh mpijob list -A`."
        ) from error


def _job(folder: JobDir, key: Key) -> MPIJob:
    with _readable(key):
        return folder.job()


@contextmanager
def _readable(key: Key) -> Iterator[None]:
    """The job's directory may vanish at any moment, and may have been damaged by hand."""
    try:
        yield
    except FileNotFoundError as error:
        raise JobNotFound(f"job {key} was deleted just now") from error
    except Damaged as damage:
        raise JobError(
            f"the directory of job {key} is damaged: {damage}",
            f"Remove it: `odh mpijob delete {key.typed}`.",
        ) from damage


def _summary(folder: JobDir, state: State | Damaged) -> JobSummary:
    key = Key(folder.namespace, folder.name)
    if isinstance(state, Damaged):
        made = datetime.fromtimestamp(0, UTC)
        with suppress(FileNotFoundError):
            made = datetime.fromtimestamp(folder.path.stat().st_mtime, UTC)
        return JobSummary(key, conditions.FAILED, made, DAMAGED, str(state))
    found = state.status.conditions
    current = conditions.find(found, conditions.state(found))
    return JobSummary(
        key=key,
        state=conditions.state(found),
        created=state.created,
        reason=current.reason if current else "",
        message=state.waits_for or (current.message if current else ""),
        started=state.status.start_time,
        completed=state.status.completion_time,
        workers=state.workers,
        slots=state.slots,
        implementation=state.implementation,
        progress=state.progress,
    )


def _pod(pod: PodState) -> PodInfo:
    cpu, memory = inside.usage(pod) if pod.pid and pod.phase == "Running" else (None, None)
    return PodInfo(
        name=pod.name,
        role="launcher" if pod.role == "launcher" else "worker",
        index=pod.index,
        phase=pod.phase,
        ready=pod.ready,
        address=pod.address,
        pid=pod.pid,
        cpu_seconds=cpu,
        memory_bytes=memory,
        end=pod.end,
    )


def _ranks(state: State) -> Iterator[RankInfo]:
    if conditions.finished(state.status.conditions) or not state.pods:
        yield from (RankInfo(r.rank, r.pod, r.address, 0, r.end) for r in state.ranks)
        return
    addresses = {p.name: p.address for p in state.pods}
    for rank in inside.pod_ranks(state.pods):
        end = rank.end.text() if rank.end else ""
        yield RankInfo(rank.rank, rank.pod, addresses.get(rank.pod, ""), rank.pid, end)


def _running_pod(key: Key, name: str) -> PodState:
    folder = _find(key)
    with _readable(key):
        pods = folder.state().pods
    for pod in pods:
        if pod.name == name and pod.pid and pod.phase == "Running":
            return pod
    running = ", ".join(p.name for p in pods if p.phase == "Running") or "none"
    raise JobError(f"pod {name} does not run", f"Pods that run: {running}.")


def _kept(job: MPIJob, settings: LocalSettings, path: str) -> Path:
    """Where a file of an ended job is: what it wrote to volumes and shared directories."""
    for replica in (job.launcher, job.worker):
        spec = replica.template.view.spec
        sources = {
            v.name: v.host_path.path
            if v.host_path
            else settings.claims.get(v.persistent_volume_claim.claim_name)
            if v.persistent_volume_claim
            else None
            for v in spec.volumes
        }
        for mount in (m for c in spec.containers[:1] for m in c.volume_mounts):
            inner = Path(path)
            if inner.is_relative_to(mount.mount_path):
                source = sources.get(mount.name)
                if source is None:
                    break
                return Path(source, mount.sub_path, inner.relative_to(mount.mount_path))
    if Path(path).exists() and not path.startswith(("/tmp/", "/run/", "/dev/")):
        return Path(path)
    raise LocalError(
        f"{path} was the pod's own and is gone with it",
        "Let the job write to a volume or to its working directory, or copy while it runs.",
    )


def _with_suspend(job: MPIJob, wanted: bool) -> MPIJob:
    policy = replace(job.spec.run_policy, suspend=wanted)
    return replace(job, spec=replace(job.spec, run_policy=policy))


def _again(job: MPIJob) -> MPIJob:
    notes = dict(job.metadata.annotations)
    before = notes.get(RESTARTS, "")
    notes[RESTARTS] = str(1 + (int(before) if before.isdecimal() else 0))
    return replace(job, metadata=replace(job.metadata, annotations=notes, deletion_timestamp=None))


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

    def takes(self, entry: logfile.Entry) -> bool:
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


class _Begun:
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
        mark = Marks(job, ended).begins(line.attempt)
        return replace(line, notes=(mark,)) if mark else line


def _writers(query: LogQuery, key: Key) -> tuple[str, ...]:
    worker = None if query.launcher else query.worker
    train = _train(key)
    if train is not None:
        return trainjob.writers(train, worker)
    return (f"{key.name}-launcher" if worker is None else f"{key.name}-worker-{worker}",)


def _lines(reader: logfile.Reader, wanted: _Filter) -> Iterator[LogLine]:
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
