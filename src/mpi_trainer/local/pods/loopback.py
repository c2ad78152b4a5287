"""Pods on machines that forbid namespaces: plain processes that share everything but a session.

Each pod has an address in 127.0.0.0/8, a directory of its own for its files and its TMPDIR, and a
shim that adopts whatever its processes leave behind. Jobs share the addresses, so each has a port
of its own, which its supervisor holds. Guarantee: the end of the main process, of
the shim or of the supervisor ends the pod's processes. Danger: there is no isolation of files,
names or devices; and when supervisor and shim are killed at the same
instant, grandchildren that left their session can survive.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Self

from msgspec.structs import replace

from mpi_trainer.local.errors import PodError
from mpi_trainer.local.pods import shim, syscalls
from mpi_trainer.local.pods.cgroups import JobGroups, start_time
from mpi_trainer.local.pods.isolation import Isolation
from mpi_trainer.local.pods.pod import MPI_FOLDER, ExitStatus, PodPaths, PodPlan
from mpi_trainer.local.pods.running_pod import START_SECONDS, ShimPod, release_all, spawn
from mpi_trainer.local.pods.shim import PodEnds

_END_ALL: Final = signal.SIGRTMIN
_PREFIX: Final = "mpi-trainer"
# No pod has this address. Below the ports that the kernel gives to outgoing connections.
_HOLDING: Final = "127.255.255.254"
_PORTS: Final = range(10240, 32768)
_shims: set[int] = set()  # of this process: the children that are not orphans


class LoopbackPod(ShimPod):
    """A `RunningPod` whose shim ends the others, since no kernel namespace does."""

    def kill(self) -> None:
        self._send(_END_ALL)

    def wait(self) -> ExitStatus:
        first = self._status is None
        status = super().wait()
        if first:
            _shims.discard(self.shim)
            end_orphans()
        return status


class Loopback:
    """A `PodHost` of plain processes; make it with `enter`."""

    def __init__(self, groups: JobGroups, home: str, held_port: socket.socket) -> None:
        self._held_port = held_port
        self._groups = groups
        self._home = home
        self._members: list[LoopbackPod] = []
        self._refused: dict[str, None] = {}

    @classmethod
    def enter(cls, isolation: Isolation, name: str, shared_dirs: tuple[str, ...] = ()) -> Self:
        """The same call as `Sandbox.enter`; all directories are shared here anyway."""
        sweep()
        # Others may write to /tmp: the name is a new one that nobody can know before (S-9).
        home = tempfile.mkdtemp(prefix=f"{_home_of(os.getpid())}.")
        if os.getuid() == 0:  # root's sshd demands it, and only the system's own service makes it
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        syscalls.adopt_orphans()
        return cls(JobGroups.make(isolation.cgroups, name), home, _hold_port())

    @property
    def not_applied(self) -> tuple[str, ...]:
        return (*self._refused, *self._groups.not_applied)

    @property
    def port(self) -> int:
        number: int = self._held_port.getsockname()[1]
        return number

    def address(self, index: int) -> str:
        number = index + 2
        return f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def paths(self, name: str) -> PodPaths:
        base = f"{self._home}/{name}"
        common = f"{self._home}/common"
        return PodPaths(f"{base}/files", f"{base}/share", f"{base}/tmp", common)

    def start(self, plans: tuple[PodPlan, ...]) -> tuple[LoopbackPod, ...]:
        new: list[LoopbackPod] = []
        deadline = time.monotonic() + START_SECONDS
        try:
            for plan in plans:
                new.append(self._spawn(plan))
            for pod, plan in zip(new, plans, strict=True):
                pod.limit(self._groups.add(plan.name, pod.pid, plan.limits))
                pod.link.send(b"go")
            for pod in new:
                pod.receive(b"run", deadline)
        except BaseException:
            release_all(new)
            raise
        self._members.extend(new)
        return tuple(new)

    def close(self) -> None:
        release_all(self._members)
        self._members.clear()
        self._held_port.close()
        self._groups.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def _spawn(self, plan: PodPlan) -> LoopbackPod:
        self._note_refusals(plan)
        paths = self.paths(plan.name)
        base = Path(paths.share).parent
        shutil.rmtree(base, ignore_errors=True)
        for place in (paths.share, paths.tmp, paths.prefix):
            Path(place).mkdir(parents=True)
        for file in plan.files:
            path = Path(paths.file(file.path))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.write_bytes(file.content)
            path.chmod(file.mode)
        placed = replace(plan, env=(*plan.env, ("TMPDIR", paths.tmp)))
        supervisor = os.getpid()
        pod = spawn(LoopbackPod, plan.name, str(base), lambda ends: _run(placed, ends, supervisor))
        _shims.add(pod.shim)
        return pod

    def _note_refusals(self, plan: PodPlan) -> None:
        for mount in plan.mounts:
            if mount.source is not None and mount.target.startswith(f"{MPI_FOLDER}/"):
                self._copy_mpi(mount.source, self.paths(plan.name).common + mount.target)
                continue
            if mount.source is None or not _same(mount.source, mount.target):
                raise PodError(
                    f"mountPath {mount.target}: needs namespaces, which this machine forbids; "
                    f"use the path of the source, {mount.source or 'for example $TMPDIR'}"
                )
            if mount.read_only:
                self._refused[f"mountPath {mount.target}: is not read-only"] = None
        if plan.shm_bytes is not None:
            self._refused["/dev/shm: is the machine's, its size is not limited"] = None

    def _copy_mpi(self, source: str, target: str) -> None:
        """Nothing can be mounted here, and an MPI follows links to itself: so it is copied."""
        if not Path(target).exists():
            shutil.copytree(source, target, symlinks=True)


def _hold_port() -> socket.socket:
    """A port that nobody uses at all addresses, bound at one so that no other job takes it."""
    for port in random.sample(_PORTS, 64):
        held = socket.socket()
        try:
            held.bind((_HOLDING, port))
        except OSError:
            held.close()
        else:
            return held
    raise PodError("no port is free for the workers' sshd: 64 of 10240 to 32767 are taken")


def _same(source: str, target: str) -> bool:
    return Path(source).resolve() == Path(target).resolve()


def _run(plan: PodPlan, ends: PodEnds, supervisor: int) -> NoReturn:
    """The shim: start the main process, adopt what it leaves, end all on a signal or as orphan."""
    try:
        shim.detach(supervisor, keep=ends.kept(plan))
        signal.pthread_sigmask(signal.SIG_BLOCK, {_END_ALL})
        syscalls.die_with_parent(_END_ALL)
        syscalls.adopt_orphans()
        if os.getppid() != supervisor or ends.link.recv(16) != b"go":
            os._exit(70)
        main = _fork_main(plan, ends)
        ends.link.send(b"run")
        ends.close_output()
        status = _until_end_of(main)
        end_below(os.getpid(), lambda _: True)
        shim.exit_like(status, ends)
    except BaseException as error:
        shim.report(ends.link, "start", error)
        os._exit(70)


def _fork_main(plan: PodPlan, ends: PodEnds) -> int:
    """Fork and exec a main process that dies with the shim; an exec that fails raises here."""
    done, tell = os.pipe()
    main = os.fork()
    if main == 0:
        try:
            syscalls.die_with_parent(signal.SIGKILL)
            os.setsid()
            if plan.stdin is not None:
                os.dup2(plan.stdin, 0)
            os.dup2(ends.stdout, 1)
            os.dup2(ends.stderr, 2)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            os.chdir(plan.cwd)
            os.execvpe(plan.argv[0], plan.argv, dict(plan.env))
        except OSError as error:
            where = str(error.filename or plan.argv[0])
            os.write(tell, b"%d " % (error.errno or 0) + os.fsencode(where))
        finally:
            os._exit(127)
    os.close(tell)
    failure = os.read(done, 4096)
    os.close(done)
    if failure:
        os.waitpid(main, 0)
        number, path = failure.split(b" ", 1)
        raise OSError(int(number), os.strerror(int(number)), os.fsdecode(path))
    return main


def _until_end_of(main: int) -> int:
    while True:
        info = signal.sigwaitinfo({*shim.FORWARDED, signal.SIGCHLD, _END_ALL})
        if info.si_signo == _END_ALL:
            return int(signal.SIGKILL)
        if info.si_signo != signal.SIGCHLD:
            os.kill(main, info.si_signo)
            continue
        status = shim.reap(main)
        if status is not None:
            return status


def end_orphans() -> None:
    """End what a killed shim left to this supervisor: its children in sessions of their own."""
    own = os.getsid(0)
    end_below(os.getpid(), lambda pid: _session(pid) != own and pid not in _shims)


def end_below(parent: int, wanted: Callable[[int], bool]) -> None:
    """Kill and reap the wanted children of this process and all below them, until none is left."""
    while True:
        tree = _children()
        roots = [pid for pid in tree.get(parent, ()) if wanted(pid)]
        if not roots:
            return
        for pid in _closure(roots, tree):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in roots:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _closure(roots: list[int], tree: dict[int, list[int]]) -> list[int]:
    found: list[int] = []
    left = list(roots)
    while left:
        pid = left.pop()
        found.append(pid)
        left.extend(tree.get(pid, ()))
    return found


def _children() -> dict[int, list[int]]:
    """The pids of this machine by parent."""
    tree: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                tree.setdefault(int(stat[1]), []).append(int(entry.name))
    return tree


def _session(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def sweep() -> tuple[str, ...]:
    """Remove the directories of this user's supervisors that were killed; returns them."""
    swept: list[str] = []
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}.*.*"):
        with contextlib.suppress(OSError, ValueError):
            owned = place.lstat().st_uid == os.getuid() and not place.is_symlink()
            pid = int(place.name.split(".")[1])
            if owned and not place.name.startswith(f"{_home_of(pid)}."):
                shutil.rmtree(place, ignore_errors=True)
                swept.append(str(place))
    return tuple(swept)


def _home_of(pid: int) -> str:
    """What the name of a supervisor's directory begins with: which process it is, of all times."""
    return f"{_PREFIX}.{pid}.{start_time(pid)}"
