"""The jobs of this machine: submitted, listed, changed and removed by any process of their owner.

There is no server. A job is a directory (`jobdir`) with a supervisor process of its own; what is
said here of a job is read from its directory, and a job whose supervisor died is repaired by the
first to look: Failed, with the reason, and nothing of it left running.
"""

from __future__ import annotations

import errno
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

from mpi_trainer.api.kinds import conditions
from mpi_trainer.api.kinds.labels import LABEL_QUEUE
from mpi_trainer.api.kinds.mpijob import MPIJob, MPIJobStatus, ReplicaSpec
from mpi_trainer.api.validation import resources
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs import code_folders, queue
from mpi_trainer.local.jobs.jobdir import Damaged, JobDir, JobState, StoredEvent
from mpi_trainer.local.paths import jobs_dir, open_unlinked

replace = msgspec.structs.replace

LOST = "SupervisorLost"
LOST_MESSAGE = "The process that held the job was killed, or the machine restarted."
KILL_AFTER = 10.0  # beyond the time that the job itself has for its end
LEFTOVER_SECONDS = 3600.0


class NoSuchJob(LookupError):
    pass


class JobTaken(ValueError):
    """There is a job of that name."""


def submit(job: MPIJob, settings: LocalSettings) -> MPIJob:
    """Stores a validated and defaulted job and starts its supervisor; the job as stored."""
    folder = JobDir(jobs_dir() / job.namespace / job.name)
    with _prepared(folder, job, settings) as (fresh, alive):
        try:
            fresh.path.rename(folder.path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise JobTaken(folder.name) from error
        _start(folder, alive)
    return folder.job()


def restart(folder: JobDir, change: Callable[[MPIJob], MPIJob]) -> MPIJob:
    """Runs an ended job again as a new one of its name. Two at once make one new job."""
    with suppress(FileNotFoundError), _held(folder) as old, old.edited():
        # Where the name means another job by now, somebody else was quicker.
        if folder.path.samefile(old.path):
            _replace_ended(folder, old, change)
    return folder.job()


def _replace_ended(folder: JobDir, old: JobDir, change: Callable[[MPIJob], MPIJob]) -> None:
    job = old.job()
    if not conditions.finished(job.status.conditions):
        return
    _until_dead(old, KILL_AFTER)
    with _prepared(folder, change(job), old.settings()) as (fresh, alive):
        _exchange(fresh.path, folder.path)
        _start(folder, alive)


def _exchange(fresh: Path, path: Path) -> None:
    from mpi_trainer.local.pods import syscalls

    try:
        syscalls.exchange(str(fresh), str(path))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        # A file system over a network cannot do it at once: the name is free for an instant.
        aside = fresh.with_name(f"{fresh.name}-old")
        path.rename(aside)
        fresh.rename(path)
        aside.rename(fresh)


@contextmanager
def _prepared(folder: JobDir, job: MPIJob, settings: LocalSettings) -> Iterator[tuple[JobDir, int]]:
    """A new job's directory, complete but hidden, and its life. What is there under the hidden
    name in the end is removed."""
    for place in (jobs_dir(), folder.path.parent):  # `parents` would not have this mode
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = JobDir(Path(tempfile.mkdtemp(prefix=".new-", dir=folder.path.parent)))
    alive = fresh.lock_alive()
    assert alive is not None, "nobody else knows the new directory"

    try:
        _write_new(fresh, job, settings)
        yield fresh, alive
    finally:
        os.close(alive)
        shutil.rmtree(fresh.path, ignore_errors=True)


def _write_new(fresh: JobDir, job: MPIJob, settings: LocalSettings) -> None:
    now = datetime.now(UTC)
    meta = replace(job.metadata, uid=str(uuid.uuid4()), creation_timestamp=now)
    job = replace(job, metadata=meta, status=MPIJobStatus())
    try:
        fresh.write_settings(settings)
        fresh.write_job(job)
        fresh.write_state(_first_state(job, settings, now))
        fresh.keep_reserve()
    except OSError as error:
        # A write that fails, as on a full disk, does not say where.
        error.filename = error.filename or str(fresh.path.parent)
        raise


def _first_state(job: MPIJob, settings: LocalSettings, now: datetime) -> JobState:
    need = queue.resource_need(job)
    named = (settings.train.job.get("spec") or {}).get("runtimeRef") if settings.train else None
    return JobState(
        created=now,
        workers=job.workers,
        slots=job.slots,
        implementation=job.spec.mpi_implementation or "",
        ttl_seconds=job.spec.run_policy.ttl_seconds_after_finished,
        needs_cpus=need.cpus,
        needs_memory=need.memory,
        queued=time.monotonic(),
        kind=job.kind,
        uid=job.metadata.uid,
        gpus=_pod_gpus(job.launcher) + job.workers * _pod_gpus(job.worker),
        queue=job.metadata.labels.get(LABEL_QUEUE, ""),
        runtime=str((named or {}).get("name") or ""),
    )


def _pod_gpus(replica: ReplicaSpec) -> int:
    return sum(resources.gpus(one) for one in replica.template.view.spec.containers)


def find(namespace: str, name: str) -> JobDir:
    """The job's directory, repaired where its supervisor died."""
    folder = JobDir(jobs_dir() / namespace / name)
    plain = all(_plain(word) for word in (namespace, name))
    if not plain or not folder.path.is_dir() or folder.path.is_symlink():
        raise NoSuchJob(f"{namespace}/{name}")
    _repair(folder)
    try:
        if not _outlived(folder.state()):
            return folder
    except Damaged:
        return folder
    except FileNotFoundError as error:
        raise NoSuchJob(f"{namespace}/{name}") from error
    remove(folder)
    raise NoSuchJob(f"{namespace}/{name}")


def _plain(word: str) -> bool:
    """Whether it names something in a directory, and nothing above, below or hidden."""
    return bool(word) and "/" not in word and not word.startswith(".")


def folders(namespace: str | None = None) -> Iterator[JobDir]:
    """Every job's directory, in no order."""
    base = jobs_dir()
    with suppress(FileNotFoundError):
        spaces = [namespace] if namespace else [e.name for e in os.scandir(base) if _folder(e)]
        for space in spaces:
            with suppress(FileNotFoundError):
                for entry in os.scandir(base / space):
                    if _folder(entry) and not entry.name.startswith("."):
                        yield JobDir(Path(entry.path))


def _folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def states(namespace: str | None = None) -> Iterator[tuple[JobDir, JobState | Damaged]]:
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
    wake_supervisor(folder)
    return folder.job()


def wake_supervisor(folder: JobDir) -> None:
    """Makes the supervisor read `job.json` again, if there is one."""
    _signal(folder, signal.SIGUSR1)


def remove(folder: JobDir) -> None:
    """Ends the job if it runs and takes its directory away. Two at once do no harm, nor does one
    who is late: a new job of the same name is another."""
    with suppress(FileNotFoundError), _held(folder) as doomed:
        patience = KILL_AFTER
        with suppress(OSError, Damaged):  # what cannot be asked to end is made to
            now = datetime.now(UTC)
            job = edit(doomed, lambda job: _with_deletion(job, now))
            patience += job.launcher.template.view.spec.termination_grace_period_seconds
        _until_dead(doomed, patience)
        _take_away(folder, doomed)


def clear_leftovers() -> None:
    """Takes away what clients left that were killed while they created or removed a job."""
    for place in (*jobs_dir().glob("*/.new-*"), *jobs_dir().glob("*/.gone-*")):
        with suppress(FileNotFoundError):
            if time.time() - place.stat().st_mtime > LEFTOVER_SECONDS:
                shutil.rmtree(place, ignore_errors=True)
    with suppress(FileNotFoundError, Damaged):
        used = {folder.settings().code for folder in [*folders()]}
        code_folders.clear(used, LEFTOVER_SECONDS)


@contextmanager
def _held(folder: JobDir) -> Iterator[JobDir]:
    """This very directory, whatever its name comes to mean meanwhile."""
    descriptor = open_unlinked(folder.path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield JobDir(Path(f"/proc/self/fd/{descriptor}"))
    finally:
        os.close(descriptor)


def _until_dead(held: JobDir, patience: float) -> None:
    deadline = time.monotonic() + patience
    killed = False
    while held.alive():
        if time.monotonic() > deadline:
            _signal(held, signal.SIGKILL)
            killed = True
        wake_supervisor(held)
        time.sleep(0.05)
    if killed:
        _sweep()


def _take_away(folder: JobDir, held: JobDir) -> None:
    """Removes the directory, unless its name has come to mean another one."""
    doomed = folder.path.with_name(f".gone-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError), held.edited():
        if folder.path.samefile(held.path):
            folder.path.rename(doomed)
    with suppress(OSError, Damaged):
        code_folders.remove(JobDir(doomed).settings().code)
    shutil.rmtree(doomed, ignore_errors=True)


def admit(folder: JobDir, state: JobState) -> JobState:
    """The state with the job admitted, where it is its turn; written before the lock is given up.

    The lock is the queue: two supervisors can never both find the same room.
    """
    with _one_at_a_time():
        state = replace(state, queued=state.queued or time.monotonic())
        others = [
            other
            for each, other in _alive_states()
            if each.path != folder.path and not conditions.finished(other.status.conditions)
        ]
        waits_for = queue.refusal(state, others, queue.capacity())
        new = replace(state, admitted=not waits_for, waits_for=waits_for)
        if new != state or not state.waits_for:
            folder.write_state(new)
        return new


def failed(state: JobState, reason: str, message: str) -> JobState:
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


def _outlived(state: JobState) -> bool:
    """Whether a finished job is past its ttlSecondsAfterFinished (AC-4)."""
    ended = state.status.completion_time
    if state.ttl_seconds is None or ended is None:
        return False
    return (datetime.now(UTC) - ended).total_seconds() > state.ttl_seconds


def _repair(folder: JobDir) -> None:
    """A job that is not finished and has no supervisor has lost it; one that was to be deleted
    has lost whoever deleted it."""
    with suppress(FileNotFoundError, Damaged):
        if conditions.finished(folder.state().status.conditions):
            return
        with _held(folder) as held:
            # Asking whether it lives locks for an instant too, and must not be taken for a life.
            while not held.alive():
                life = held.lock_alive()
                if life is not None:
                    try:
                        _record_lost_supervisor(folder, held)
                    finally:
                        os.close(life)
                    _sweep()
                    return


def _record_lost_supervisor(folder: JobDir, held: JobDir) -> None:
    state = held.state()
    if conditions.finished(state.status.conditions):
        return
    if held.job().metadata.deletion_timestamp is not None:
        _take_away(folder, held)
        return
    held.write_state(failed(state, LOST, LOST_MESSAGE))
    with suppress(OSError):
        held.add_event(StoredEvent(datetime.now(UTC), "Warning", LOST, LOST_MESSAGE))


def _sweep() -> None:
    """What a killed supervisor leaves on the machine."""
    from mpi_trainer.local.pods import cgroups, loopback

    cgroups.sweep()
    loopback.sweep()


def _alive_states() -> Iterator[tuple[JobDir, JobState]]:
    for folder in folders():
        with suppress(FileNotFoundError, Damaged):
            if folder.alive():
                yield folder, folder.state()


def _signal(folder: JobDir, number: signal.Signals) -> None:
    """To the supervisor and nobody else: its number may be another's by now."""
    with suppress(OSError, Damaged):
        supervisor = folder.state().supervisor
        if not supervisor or not folder.alive():
            return
        process = os.pidfd_open(supervisor)
        try:
            if _MODULE.encode() in Path(f"/proc/{supervisor}/cmdline").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


_MODULE = "mpi_trainer.local.execute.background"
# Forks before anything is imported, so that the supervisor is nobody's child: a notebook that
# submits jobs collects no zombies, and a shell that ends takes no job along.
_ORPHAN = "import os, sys\nif os.fork(): os._exit(0)\nos.execv(sys.argv[1], sys.argv[1:])"


def _start(folder: JobDir, alive: int) -> None:
    """A supervisor in a session of its own, holding the lock that was taken for it."""
    log = open_unlinked(folder.path / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    supervisor = [sys.executable, "-m", _MODULE, str(folder.path)]
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
    descriptor = open_unlinked(jobs_dir() / ".admission.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
