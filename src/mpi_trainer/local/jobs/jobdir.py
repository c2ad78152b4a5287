"""A job's directory: everything about it, for any process of its owner to read.

    job.json     what was asked for; clients change it, under `edit.lock`
    settings.json  how it runs here: MPI, directory, environment, materials (may hold secrets)
    state.json   how it stands; only its supervisor writes it
    events.jsonl, log.*.jsonl  what happened and what was printed
    alive.lock   locked for as long as the supervisor lives

Every file is replaced as a whole, so a reader sees the old or the new one, never a mixture. The
directory is its owner's alone (0700), and no symbolic link in it is followed. Danger: a free
`alive.lock` on an unfinished job means that its supervisor died; whoever notices must repair it
(`store`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from mpi_trainer.api.kinds.meta import ApiValue
from mpi_trainer.api.kinds.mpijob import KIND, MPIJob, MPIJobStatus, to_wire
from mpi_trainer.api.yaml import typed
from mpi_trainer.api.yaml.decode import decode
from mpi_trainer.decide.history import History
from mpi_trainer.decide.observed import Record
from mpi_trainer.diagnose.progress import Progress
from mpi_trainer.local.execute.reports import RankRow
from mpi_trainer.local.execute.settings import LocalSettings
from mpi_trainer.local.jobs.logfile import Missing
from mpi_trainer.local.paths import open_unlinked

T = TypeVar("T")

RESERVE = 64 * 1024
_VERSIONED = ("job.json", "state.json")


class PodState(msgspec.Struct, frozen=True):
    name: str
    role: str
    index: int
    phase: str
    ready: bool
    address: str
    pid: int
    end: str = ""
    attempt: int = 1
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""


class JobState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a job stands. The first fields are what a list of jobs needs."""

    created: datetime
    workers: int
    slots: int
    implementation: str
    status: MPIJobStatus = MPIJobStatus()
    progress: Progress | None = None
    ttl_seconds: int | None = None
    record: Record = Record()
    attempts: History = ()
    pods: tuple[PodState, ...] = ()
    ranks: tuple[RankRow, ...] = ()
    supervisor: int = 0
    needs_cpus: float = 0.0
    needs_memory: int = 0
    queued: float | None = None
    admitted: bool = False
    waits_for: str = ""
    missing: Missing = Missing()
    kind: str = KIND
    """of the job as it was submitted"""
    uid: str = ""
    gpus: int = 0
    queue: str = ""
    runtime: str = ""
    """what a TrainJob names"""


class StoredEvent(msgspec.Struct, frozen=True):
    time: datetime
    type: str
    reason: str
    message: str


class _AskedPolicy(ApiValue, frozen=True):
    suspend: bool | None = None


class _AskedSpec(ApiValue, frozen=True):
    run_policy: _AskedPolicy = _AskedPolicy()


class _Asked(ApiValue, frozen=True):
    spec: _AskedSpec = _AskedSpec()


class Damaged(Exception):
    """A file of the directory cannot be read; the text says which and why."""


class JobDir(msgspec.Struct, frozen=True):
    path: Path

    @property
    def namespace(self) -> str:
        return self.path.parent.name

    @property
    def name(self) -> str:
        return self.path.name

    def job(self) -> MPIJob:
        data = self._read("job.json", dict[str, Any])
        found = decode(MPIJob, data)
        if found.errors or found.value is None:
            raise Damaged(f"{self.path / 'job.json'}: {found.errors[0]}")
        return msgspec.structs.replace(found.value, status=self.state().status)

    def state(self) -> JobState:
        return self._read("state.json", JobState)

    def asks_suspension(self) -> bool:
        return bool(self._read("job.json", _Asked).spec.run_policy.suspend)

    def version(self) -> str:
        """Another one after every change of the job or its state."""
        return "-".join(str((self.path / name).stat().st_mtime_ns) for name in _VERSIONED)

    def settings(self) -> LocalSettings:
        return self._read("settings.json", LocalSettings)

    def events(self) -> tuple[StoredEvent, ...]:
        decoder = typed.decoder(StoredEvent)
        found = []
        with suppress(FileNotFoundError):
            with self._opened("events.jsonl", os.O_RDONLY) as file:
                lines = file.read().splitlines()
            for line in lines:
                with suppress(msgspec.DecodeError):  # torn by a kill
                    found.append(decoder.decode(line))
        return tuple(found)

    def write_job(self, job: MPIJob) -> None:
        spec = {k: v for k, v in to_wire(job).items() if k != "status"}
        self._write("job.json", msgspec.json.encode(spec))

    def write_state(self, state: JobState) -> None:
        self._write("state.json", msgspec.json.encode(state))

    def write_settings(self, settings: LocalSettings) -> None:
        self._write("settings.json", msgspec.json.encode(settings))

    def keep_reserve(self) -> None:
        """Room for `state.json` and `job.json` on a full disk: a job that ends, or is ended."""
        with self._opened("reserve", os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
            file.write(b"\0" * RESERVE)

    def give_up_reserve(self) -> None:
        """For the last words of a job that has ended."""
        (self.path / "reserve").unlink(missing_ok=True)

    def add_event(self, event: StoredEvent) -> None:
        with self._opened("events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            # The first newline closes a line that a kill or a full disk has torn.
            file.write(b"\n" + msgspec.json.encode(event) + b"\n")

    @contextmanager
    def edited(self) -> Iterator[None]:
        """One client at a time changes `job.json`."""
        descriptor = open_unlinked(self.path / "edit.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def lock_alive(self) -> int | None:
        """The locked `alive.lock`, to be held or inherited; None where a supervisor holds it."""
        descriptor = open_unlinked(self.path / "alive.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def alive(self) -> bool:
        try:
            descriptor = open_unlinked(self.path / "alive.lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _read(self, name: str, kind: type[T]) -> T:
        try:
            with self._opened(name, os.O_RDONLY) as file:
                return typed.decode(file.read(), kind)
        except msgspec.MsgspecError as error:
            raise Damaged(f"{self.path / name}: {error}") from error
        except OSError as error:
            if not self.path.exists():
                raise  # the whole job is gone, which is no damage
            raise Damaged(f"{self.path / name}: {error.strerror}") from error

    def _write(self, name: str, data: bytes) -> None:
        """Danger: raises OSError on a disk so full that even the reserve does not help."""
        try:
            self._replace(name, data)
        except OSError:
            (self.path / "reserve").unlink(missing_ok=True)
            self._replace(name, data)
            with suppress(OSError):  # before the log takes it: what is left of it, for the next
                self.keep_reserve()

    def _replace(self, name: str, data: bytes) -> None:
        fresh = self.path / f".{name}.new"
        try:
            with self._opened(fresh.name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                file.write(data)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        fresh.rename(self.path / name)

    def _opened(self, name: str, flags: int) -> IO[bytes]:
        mode = "rb" if flags == os.O_RDONLY else "wb"
        return os.fdopen(open_unlinked(self.path / name, flags), mode)
