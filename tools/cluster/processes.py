"""The processes of a cluster: started in the background, found again by anyone, ended for sure.

Every process carries the cluster's state directory in its environment. What was started but not
yet written down, and what a started program started in turn (containerd's shims), is found by
that mark, so a killed `up` leaves nothing that `down` cannot see. A pid file also holds
the process's start time, so a reused pid is never taken for ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tools.cluster.errors import ClusterError

MARK: Final = "MPI_TRAINER_CLUSTER_STATE"


def start(
    state: Path,
    name: str,
    argv: Sequence[str],
    netns: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Start a program in the background, in a node's network namespace if one is named."""
    # Not `ip netns exec`: it remounts /sys and hides the cgroup mounts.
    enter = ["nsenter", f"--net=/run/netns/{netns}", "--"] if netns else []
    (state / "log").mkdir(exist_ok=True)
    (state / "pid").mkdir(exist_ok=True)
    log = str(state / "log" / f"{name}.log")
    command = [*enter, *argv]
    pid = os.posix_spawnp(
        command[0],
        command,
        {**os.environ, **environment, MARK: str(state)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    _await_mark(pid)
    (state / "pid" / name).write_text(f"{pid} {start_time(pid)}")
    return pid


def _await_mark(pid: int) -> None:
    """The kernel lets us go on before the new program's environment can be read."""
    environment = Path(f"/proc/{pid}/environ")
    while start_time(pid):
        try:
            if environment.read_bytes():
                return
        except OSError:
            return
        time.sleep(0.001)


def recorded(state: Path) -> dict[str, int]:
    """Name -> pid of every process that was started; 0 where it is dead."""
    found: dict[str, int] = {}
    for path in sorted((state / "pid").glob("*")):
        pid, _, began = path.read_text().partition(" ")
        alive = pid.isdigit() and start_time(int(pid)) == began != ""
        found[path.name] = int(pid) if alive else 0
    return found


def marked(state: Path) -> list[int]:
    """Every living process that was started for this cluster, directly or not."""
    mark = f"{MARK}={state}".encode()
    pids = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0") and start_time(int(path.name)):
            pids.append(int(path.name))
    return pids


def start_time(pid: int) -> str:
    """When the process began, in clock ticks since boot; empty if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def end(pids: Iterable[int], grace_seconds: float = 0.0) -> None:
    """End processes: ask first if there is grace, then kill, and wait until they are gone."""
    identities = {pid: start_time(pid) for pid in pids if pid != os.getpid()}
    if grace_seconds:
        _signal_all(identities, signal.SIGTERM)
        _wait_gone(identities, grace_seconds)
    _signal_all(identities, signal.SIGKILL)
    left = _wait_gone(identities, 20.0)
    if left:
        raise ClusterError(
            f"processes {left} do not end even when killed",
            "They hang in the kernel; see `/proc/PID/stack`.",
        )


def _signal_all(identities: dict[int, str], number: signal.Signals) -> None:
    for pid, began in identities.items():
        if began and start_time(pid) == began:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


def _wait_gone(identities: dict[int, str], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while True:
        _reap()
        left = [pid for pid, began in identities.items() if began and start_time(pid) == began]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _reap() -> None:
    """Collect our own dead children, which would stay as zombies while we live."""
    for pid in [p for p in _children() if not start_time(p)]:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _children() -> list[int]:
    try:
        return [
            int(p)
            for p in Path("/proc/self/task")
            .joinpath(str(os.getpid()), "children")
            .read_text()
            .split()
        ]
    except OSError:
        return []


def run(argv: Sequence[str], *, data: str | None = None, seconds: float = 60.0) -> str:
    """Run a short command to its end; its output, or an error that shows what it said."""
    try:
        answer = subprocess.run(
            list(argv), input=data, capture_output=True, text=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        raise ClusterError(
            f"`{argv[0]}` is not installed", "Run `python -m tools.cluster setup` as root."
        ) from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`{' '.join(argv[:4])} …` took longer than {seconds:.0f} s") from None
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        raise ClusterError(f"`{' '.join(argv[:6])}` failed: {said[-2000:]}")
    return answer.stdout
