"""Access to a running pod: its ranks, its files, a command in it, the stacks of its ranks.

All of it goes through the pod's first process: `/proc/PID/root` is the pod's file system, and
nsenter joins its namespaces. Only the job's owner and root can do so; the kernel sees to that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mpi_trainer.decide.observed import ObservedRank
from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.execute import ranks
from mpi_trainer.local.jobs.jobdir import PodState
from mpi_trainer.local.pods import rootfs

STACK_SECONDS = 20


def pod_ranks(pods: Sequence[PodState]) -> tuple[ObservedRank, ...]:
    """The ranks that have started so far."""
    shares = {p.name: f"/proc/{p.pid}/root{rootfs.SHARE}" for p in pods if p.pid}
    with suppress(OSError):  # a pod that is just ending, or another user's
        return ranks.read(shares, max((p.attempt for p in pods), default=1))
    return ()


def run_in(pod: PodState, command: Sequence[str], directory: str) -> int:
    """Runs a command in that directory of the pod, with the caller's terminal and the pod's
    environment; where the pod has no such directory, in its root."""
    main = next(_members(pod.pid), pod.pid)
    inside = Path(f"/proc/{pod.pid}/root", directory.lstrip("/"))
    place = [f"--wd={inside}"] if os.path.isdir(inside) else []  # noqa: PTH112 - never raises
    entering = ["nsenter", f"--target={pod.pid}", *_namespaces(pod.pid), *place, "--", *command]
    return subprocess.run(entering, env=_environment(main), check=False).returncode


def copy_out(pod: PodState, path: str, destination: Path) -> None:
    """Copies a file or directory of the pod."""
    copy(Path(f"/proc/{pod.pid}/root", path.lstrip("/")), path, destination)


def copy(source: Path, shown: str, destination: Path) -> None:
    target = destination / Path(shown).name if destination.is_dir() else destination
    try:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)
    except FileNotFoundError as error:
        raise LocalError(
            f"there is no {shown} in the job", "Check the path with `odh mpijob exec NAME -- ls`."
        ) from error
    except OSError as error:
        raise LocalError(f"cannot copy {shown} to {target}: {error.strerror}") from error


def stacks(pods: Sequence[PodState]) -> dict[int, str]:
    """Where every rank is, by py-spy or gdb where they are installed, else by the kernel."""
    found = {}
    by_name = {p.name: p for p in pods}
    for rank in pod_ranks(pods):
        if rank.end is None and rank.pod in by_name:
            pid = _outside(by_name[rank.pod].pid, rank.pid)
            if pid is not None:
                found[rank.rank] = _stack(pid)
    return found


def usage(pod: PodState) -> tuple[float, int]:
    """CPU seconds and resident bytes of all the pod's processes."""
    ticks, pages = 0, 0
    for pid in (pod.pid, *_members(pod.pid)):
        with suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def _members(init: int) -> Iterator[int]:
    """The pod's processes but the first, oldest first: those that share its PID namespace."""
    with suppress(OSError):
        namespace = _namespace(init, "pid")
        numbers = (int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal())
        for pid in sorted(numbers):
            with suppress(OSError):
                if pid != init and _namespace(pid, "pid") == namespace:
                    yield pid


def _namespace(pid: int, kind: str) -> Path:
    return Path(f"/proc/{pid}/ns/{kind}").readlink()


def _namespaces(pid: int) -> list[str]:
    chosen = ["--mount", "--net", "--uts", "--ipc", "--pid"]
    if _namespace(pid, "user") != _namespace(os.getpid(), "user"):
        chosen += ["--user", "--preserve-credentials"]
    return chosen


def _environment(pid: int) -> dict[str, str]:
    data = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="surrogateescape")
    return dict(pair.split("=", 1) for pair in data.split("\0") if "=" in pair)


def _outside(init: int, inner: int) -> int | None:
    """The machine's number of a process that the pod knows as `inner`."""
    for pid in _members(init):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == str(inner):
                    return pid
    return None


def _stack(pid: int) -> str:
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    gdb = shutil.which("gdb")
    tries = []
    if spy:
        tries.append([spy, "dump", "--nonblocking", "--pid", str(pid)])
    if gdb:
        tries.append([gdb, "-p", str(pid), "-batch", "-ex", "thread apply all bt"])
    for command in tries:
        with suppress(subprocess.TimeoutExpired, OSError):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=STACK_SECONDS, check=False
            )
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.strip()
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    with suppress(OSError):
        where = Path(f"/proc/{pid}/wchan").read_text() or "user code"
        return f"process {pid}: state {state}, in {where} (install py-spy for Python stacks)"
    return f"process {pid}: state {state} (install py-spy for Python stacks)"
