"""The jobs of this machine: submitted, listed, changed and removed by any process of their owner.

There is no server. A job is a directory (`jobdir`) with a supervisor process of its own; what is
said here of a job is read from its directory, and a job whose supervisor died is repaired by the
first to look: Failed, with the reason, and nothing of it left running.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mpi_trainer.api import conditions
from mpi_trainer.api.mpijob import JobStatus, MPIJob
from mpi_trainer.local import admission
from mpi_trainer.local.jobdir import Damaged, Event, JobDir, State
from mpi_trainer.local.places import jobs_dir
from mpi_trainer.local.settings import Settings

replace = msgspec.structs.replace

LOST = "SupervisorLost"
LOST_MESSAGE = "The process that held the job was killed, or the machine restarted."
KILL_AFTER = 40.0


class NoSuchJob(LookupError):
    pass


class JobTaken(ValueError):
    """There is a job of that name."""


def submit(job: MPIJob, settings: Settings) -> MPIJob:
    """Stores a validated and defaulted job and starts its supervisor; the job as stored."""
    parent = jobs_dir() / job.namespace
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = datetime.now(UTC)
    meta = replace(job.metadata, uid=str(uuid.uuid4()), creation_timestamp=now)
    job = replace(job, metadata=meta, status=JobStatus())
    need = admission.need(job)
    fresh = JobDir(Path(tempfile.mkdtemp(prefix=".new-", dir=parent)))
    alive: int | None = None
    try:
        fresh.write_settings(settings)
        fresh.write_job(job)
        fresh.keep_reserve()
        fresh.write_state(
            State(
                created=now,
                workers=job.workers,
                slots=job.slots,
                implementation=job.spec.mpi_implementation or "",
                ttl_seconds=job.spec.run_policy.ttl_seconds_after_finished,
                needs_cpus=need.cpus,
                needs_memory=need.memory,
                queued=time.time(),
            )
        )
        alive = fresh.take_life()
        folder = JobDir(parent / job.name)
        try:
            fresh.path.rename(folder.path)
        except OSError as error:
            raise JobTaken(job.name) from error
        assert alive is not None, "nobody else knows the new directory"
        _start(folder, alive)
    finally:
        if alive is not None:
            os.close(alive)
        shutil.rmtree(fresh.path, ignore_errors=True)
    return folder.job()


def find(namespace: str, name: str) -> JobDir:
    """The job's directory, repaired where its supervisor died."""
    folder = JobDir(jobs_dir() / namespace / name)
    if not name or name.startswith(".") or not folder.path.is_dir():
        raise NoSuchJob(f"{namespace}/{name}")
    _repair(folder)
    with suppress(Damaged):
        if _outlived(folder.state()):
            remove(folder)
            raise NoSuchJob(f"{namespace}/{name}")
    return folder


def folders(namespace: str | None = None) -> Iterator[JobDir]:
    """Every job's directory, in no order."""
    base = jobs_dir()
    with suppress(FileNotFoundError):
        spaces = [namespace] if namespace else [e.name for e in os.scandir(base) if e.is_dir()]
        for space in spaces:
            with suppress(FileNotFoundError):
                for entry in os.scandir(base / space):
                    if not entry.name.startswith("."):
                        yield JobDir(Path(entry.path))


def states(namespace: str | None = None) -> Iterator[tuple[JobDir, State | Damaged]]:
    """Every job with how it stands; one that ended is read and nothing more."""
    for folder in folders(namespace):
        try:
            state = folder.state()
            if not conditions.finished(state.status.conditions):
                _repair(folder)
                state = folder.state()
            elif _outlived(state):
                remove(folder)
                continue
            yield folder, state
        except FileNotFoundError:
            continue  # deleted just now
        except Damaged as damage:
            yield folder, damage


def edit(folder: JobDir, change: Callable[[MPIJob], MPIJob]) -> MPIJob:
    """Changes what is asked of a job, and tells its supervisor."""
    with folder.edited():
        job = change(folder.job())
        folder.write_job(job)
    poke(folder)
    return folder.job()


def poke(folder: JobDir) -> None:
    """Makes the supervisor read `job.json` again, if there is one."""
    if folder.alive():
        with suppress(ProcessLookupError, FileNotFoundError, Damaged):
            supervisor = folder.state().supervisor
            if supervisor:
                os.kill(supervisor, signal.SIGUSR1)


def remove(folder: JobDir) -> None:
    """Ends the job if it runs and takes its directory away. Two at once do no harm."""
    deadline = time.monotonic() + KILL_AFTER
    with suppress(FileNotFoundError, Damaged, NotADirectoryError):
        now = datetime.now(UTC)
        edit(folder, lambda job: _with_deletion(job, now))
    while folder.path.exists() and folder.alive():
        if time.monotonic() > deadline:
            _kill(folder)
        poke(folder)
        time.sleep(0.05)
    doomed = folder.path.with_name(f".gone-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        folder.path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def admit(folder: JobDir, state: State) -> State:
    """The state with the job admitted, where it is its turn; written before the lock is given up.

    The lock is the queue: two supervisors can never both find the same room.
    """
    with _one_at_a_time():
        state = replace(state, queued=state.queued or time.time())
        others = [
            other
            for each, other in _alive_states()
            if each.path != folder.path and not conditions.finished(other.status.conditions)
        ]
        waits_for = admission.refusal(state, others, admission.capacity())
        new = replace(state, admitted=not waits_for, waits_for=waits_for)
        if new != state or not state.waits_for:
            folder.write_state(new)
        return new


def failed(state: State, reason: str, message: str) -> State:
    """The state of a job that ended without its supervisor's word."""
    now = datetime.now(UTC)
    found = state.status.conditions
    found = conditions.with_condition(
        found, _condition(conditions.FAILED, True, reason, message), now
    )
    for kind in (conditions.RUNNING, conditions.RESTARTING, conditions.SUSPENDED):
        if conditions.holds(found, kind):
            found = conditions.with_condition(found, _condition(kind, False, reason, message), now)
    status = replace(state.status, conditions=found, completion_time=now)
    return replace(state, status=status, admitted=False, waits_for="", pods=(), queued=None)


def _condition(kind: str, holds: bool, reason: str, message: str) -> conditions.Condition:
    truth = conditions.TRUE if holds else conditions.FALSE
    return conditions.Condition(type=kind, status=truth, reason=reason, message=message)


def _with_deletion(job: MPIJob, now: datetime) -> MPIJob:
    meta = job.metadata
    if meta.deletion_timestamp is not None:
        return job
    return replace(job, metadata=replace(meta, deletion_timestamp=now))


def _outlived(state: State) -> bool:
    """Whether a finished job is past its ttlSecondsAfterFinished (AC-4)."""
    ended = state.status.completion_time
    if state.ttl_seconds is None or ended is None:
        return False
    return (datetime.now(UTC) - ended).total_seconds() > state.ttl_seconds


def _repair(folder: JobDir) -> None:
    """A job that is not finished and has no supervisor has lost it."""
    with suppress(FileNotFoundError, Damaged):
        if conditions.finished(folder.state().status.conditions):
            return
        life = folder.take_life()
        if life is None:
            return
        try:
            state = folder.state()
            over = conditions.finished(state.status.conditions)
            if not over and folder.job().metadata.deletion_timestamp is None:
                folder.write_state(failed(state, LOST, LOST_MESSAGE))
                folder.add_event(Event(datetime.now(UTC), "Warning", LOST, LOST_MESSAGE))
        finally:
            os.close(life)
        from mpi_trainer.local import cgroups, loopback

        cgroups.sweep()
        loopback.sweep()


def _alive_states() -> Iterator[tuple[JobDir, State]]:
    for folder in folders():
        with suppress(FileNotFoundError, Damaged):
            if folder.alive():
                yield folder, folder.state()


def _kill(folder: JobDir) -> None:
    with suppress(ProcessLookupError, FileNotFoundError, Damaged):
        supervisor = folder.state().supervisor
        if supervisor and folder.alive():
            os.kill(supervisor, signal.SIGKILL)


# Forks before anything is imported, so that the supervisor is nobody's child: a notebook that
# submits jobs collects no zombies, and a shell that ends takes no job along.
_ORPHAN = "import os, sys\nif os.fork(): os._exit(0)\nos.execv(sys.argv[1], sys.argv[1:])"


def _start(folder: JobDir, alive: int) -> None:
    """A supervisor in a session of its own, holding the lock that was taken for it."""
    log = os.open(folder.path / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    supervisor = [sys.executable, "-m", "mpi_trainer.local.background", str(folder.path)]
    try:
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ORPHAN, *supervisor],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            pass_fds=(alive,),
            start_new_session=True,
            check=True,
        )
    finally:
        os.close(log)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    descriptor = os.open(jobs_dir() / ".admission.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
