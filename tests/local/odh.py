"""Runs the real `odh` as a user would, and counts what a run leaves on the machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Self, TypeVar

import msgspec

from tests import forkserver

ODH = Path(sys.executable).with_name("odh")
MARK = forkserver.MARK
OUR_LINK = re.compile(r"pods|port\d+").fullmatch
OUR_MOUNT = "/run/mpi-trainer."
T = TypeVar("T")


class Census(msgspec.Struct, frozen=True):
    """What a run could leave behind. Processes are counted by a mark in their environment, or by
    a name made of it."""

    links: frozenset[str]
    mounts: frozenset[str]
    temporary: frozenset[str]
    groups: frozenset[str]
    processes: frozenset[int]

    @classmethod
    def take(cls, mark: str) -> Self:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return cls(
            links=frozenset(p.name for p in Path("/sys/class/net").iterdir() if OUR_LINK(p.name)),
            mounts=frozenset(line.split()[4] for line in mounts if OUR_MOUNT in line),
            temporary=frozenset(
                p.name for p in Path(tempfile.gettempdir()).iterdir() if _orphaned(p.name)
            ),
            groups=frozenset(_groups()),
            processes=frozenset(processes(mark)),
        )

    def beyond(self, before: Census) -> list[str]:
        """What is here now and was not before."""
        return [
            f"{name}: {value}"
            for name in self.__struct_fields__
            for value in getattr(self, name) - getattr(before, name)
        ]


def _orphaned(name: str) -> bool:
    """Whether this belongs to a supervisor that is gone; others may be running beside us."""
    owner = re.match(r"mpi-trainer[.-](\d+)", name)
    return owner is not None and not Path("/proc", owner[1]).exists()


def _groups() -> Iterator[str]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for root in (Path("/sys/fs/cgroup", controllers), Path("/sys/fs/cgroup")):
            made = (root / path.lstrip("/")).glob("mpi-trainer*")
            yield from (str(p) for p in made if _orphaned(p.name))


class Process(msgspec.Struct, frozen=True):
    pid: int
    namespace: str
    command: str
    marked: bool


def _processes(mark: str) -> Iterator[Process]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):  # it has just ended
            yield Process(
                pid=int(folder.name),
                namespace=str((folder / "ns/pid").readlink()),
                command=os.fsdecode((folder / "cmdline").read_bytes().replace(b"\0", b" ")),
                marked=f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
                or (folder / "comm").read_text() == f"{forkserver.named(mark)}\n",
            )


def processes(mark: str, word: str = "") -> list[int]:
    """Processes of the run with this mark, those whose command line has `word` in it.

    sshd writes over its environment, so whatever shares a pod with a marked process counts too.
    """
    everything = list(_processes(mark))
    here = str(Path("/proc/self/ns/pid").readlink())
    pods = {p.namespace for p in everything if p.marked} - {here}
    ours = (p for p in everything if p.marked or p.namespace in pods)
    return sorted(p.pid for p in ours if re.search(word, p.command))


def until(what: str, probe: Callable[[], T], seconds: float = 60.0) -> T:
    """The first true answer of `probe`; fails with `what` when none comes in time."""
    deadline = time.monotonic() + seconds
    began = time.monotonic()
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        _pause(began)
        began = time.monotonic()
    return answer


def _pause(began: float) -> None:
    """Before the next look; longer after one that took long, and leaves the machine to what is
    looked for."""
    time.sleep(min(max(0.02, 5 * (time.monotonic() - began)), 0.5))


def assert_nothing_left(mark: str, before: Census) -> None:
    """Ends come a moment after what caused them; half a minute later nothing may be left."""
    deadline = time.monotonic() + 30.0
    began = time.monotonic()
    while left := Census.take(mark).beyond(before):
        assert time.monotonic() < deadline, left
        _pause(began)
        began = time.monotonic()


class _Reader:
    """All that a pipe gives, read as it comes. `communicate` would lose what a `readline` before it
    has read already and not returned."""

    def __init__(self, pipe: IO[str] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def until(self, text: str, seconds: float) -> bool:
        """Waits for a line with `text` in it; whether the pipe has ended without one."""

        def known() -> bool:
            return self._ended or any(text in line for line in self._lines)

        with self._changed:
            assert self._changed.wait_for(known, seconds), f"{text!r} within {seconds} s"
            return not any(text in line for line in self._lines)

    def all(self, seconds: float) -> str:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"the end of the output within {seconds} s"
        return "".join(self._lines)

    def _read(self) -> None:
        try:
            with self._pipe:
                for line in self._pipe:
                    self._add(line)
        finally:
            self._add(None)

    def _add(self, line: str | None) -> None:
        with self._changed:
            if line is None:
                self._ended = True
            else:
                self._lines.append(line)
            self._changed.notify_all()


class Run:
    """An `odh` that runs, to be watched, hurt and waited for."""

    def __init__(
        self,
        *words: str,
        cwd: Path | None = None,
        program: tuple[str, ...] = (str(ODH),),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.mark = uuid.uuid4().hex
        self.before = Census.take(self.mark)
        environment = {**(os.environ if env is None else env), MARK: self.mark}
        marked = ("--env", f"{MARK}={self.mark}") if words[0] == "run" else ()
        command = [*program, words[0], *marked, *words[1:]]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=environment,
        )
        self._stdout = _Reader(self._process.stdout)
        self._stderr = _Reader(self._process.stderr)

    def until_printed(self, text: str, seconds: float = 150.0) -> None:
        ended = self._stdout.until(text, seconds)
        assert not ended, f"odh ended before printing {text!r}: {self._stderr.all(seconds)}"

    def pids(self, word: str) -> list[int]:
        return processes(self.mark, word)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, seconds: float = 150.0) -> subprocess.CompletedProcess[str]:
        """How it ended; by then it must have left nothing."""
        code = self._process.wait(timeout=seconds)
        out, err = self._stdout.all(seconds), self._stderr.all(seconds)
        self.assert_clean()
        return subprocess.CompletedProcess([], code, out, err)

    def assert_clean(self) -> None:
        assert_nothing_left(self.mark, self.before)


def run(
    *words: str,
    cwd: Path | None = None,
    program: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """By a forked `odh`, where no other program is given."""
    return Run(*words, cwd=cwd, program=program or (str(forkserver.odh()),), env=env).end()
