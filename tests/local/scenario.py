"""Runs a scenario in a forked supervisor, as root or as an ordinary user, and brings back what
it returned. Also the plain counts of what a machine has, to compare before and after."""

import encodings.idna  # noqa: F401  an ordinary user cannot load it later from root's home
import os
import pickle
import select
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mpi_trainer.local.pods import cgroups, isolation, syscalls
from mpi_trainer.local.pods.netlink import Netlink
from mpi_trainer.local.pods.pod import PodPlan, RunningPod
from mpi_trainer.local.pods.sandbox import Sandbox

ORDINARY_UID = 12345
OURS = "mpi-trainer"
ROUNDS = int(os.environ.get("ROUNDS", "10"))
"""of starting and stopping, after which nothing may be left"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the test changes uids and sees cgroups")


def become(uid: int) -> None:
    """Turn this (forked) process into one of an ordinary user."""
    if uid == os.getuid():
        return
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.environ["HOME"] = "/nonexistent"
    os.chdir("/")
    syscalls.allow_own_proc()


def in_child(uid: int, body: Callable[[], Any]) -> Any:
    """What `body` returns when run in a forked child as `uid`; its traceback as a failure."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            become(uid)
            answer = (True, body())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writer, "wb") as out:
            pickle.dump(answer, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as source:
        raw = source.read()
    os.waitpid(pid, 0)
    ok, value = pickle.loads(raw)
    if not ok:
        pytest.fail(value)
    return value


def in_sandbox(uid: int, body: Callable[[Sandbox], Any], shared: tuple[str, ...] = ()) -> Any:
    """What `body` returns when run in the supervisor of a sandbox that is closed afterwards."""

    def run() -> Any:
        sandbox = Sandbox.enter(isolation.probe(), "test", shared)
        try:
            return body(sandbox)
        finally:
            sandbox.close()

    return in_child(uid, run)


def plan(sandbox: Sandbox, index: int, script: str, **changes: Any) -> PodPlan:
    """A pod named w0, w1, ... that knows four of them and runs a shell script."""
    hosts = "127.0.0.1 localhost\n" + "".join(f"{sandbox.address(i)} w{i}\n" for i in range(4))
    made = PodPlan(
        name=f"w{index}",
        hostname=f"w{index}",
        address=sandbox.address(index),
        argv=("/bin/sh", "-c", script),
        env=(("PATH", "/usr/local/bin:/usr/bin:/bin"),),
        cwd="/",
        hosts=hosts,
    )
    return replace(made, **changes)


def output(pod: RunningPod) -> str:
    """Everything that the pod writes until it ends, its errors after its output."""
    return read_all(pod.stdout) + read_all(pod.stderr)


def read_all(fd: int) -> str:
    chunks: list[bytes] = []
    while select.select([fd], [], [], 60)[0]:
        chunk = os.read(fd, 65536)
        if not chunk:
            return b"".join(chunks).decode()
        chunks.append(chunk)
    raise TimeoutError("the pod did not close its output within 20 seconds")


def read_line(fd: int) -> str:
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([fd], [], [], 60)[0]:
            raise TimeoutError(f"no whole line within 20 seconds: {line!r}")
        chunk = os.read(fd, 1)
        if not chunk:
            raise EOFError(line.decode())
        line += chunk
    return line.decode().strip()


def until(fact: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {what}"
        time.sleep(0.005)


class Traces:
    """What a sandbox could leave on the machine. Processes are found by a mark in argv."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._before = self._left()

    def processes(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self._mark in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found

    def _left(self, supervisor: int = 0) -> set[str]:
        """Only what bears our names: the machine may be busy with other things meanwhile."""
        support = cgroups.detect()
        places = [Path(place) for place in (support.memory, support.cpu) if place]
        with Netlink() as netlink:
            links = [name for name in netlink.links() if name.startswith(("pods", "port"))]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        return {
            *links,
            *(str(group) for place in places for group in place.glob(f"{OURS}.{supervisor}.*")),
            *(line for line in mounts if any(n in line for n in (" /tmp ", " /run ", f"{OURS}."))),
            *(str(path) for path in Path("/run").glob(f"{OURS}.*")),
        }

    def assert_gone(self, supervisor: int = 0) -> None:
        until(lambda: not self.processes(), "no process of the pods is left")
        cgroups.sweep()
        left = self._left(supervisor) - self._before
        assert not left, f"left behind: {left}"
