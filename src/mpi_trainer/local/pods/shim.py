"""The processes of one pod: the shim outside it, its init inside, and the main process.

    supervisor -fork-> shim (new PID, net, mount, UTS, IPC) -fork-> init, PID 1 -spawn-> main

The shim lives until init is gone, and init is gone only after every process of the pod is, so the
end of the shim is the end of the pod. Each dies by SIGKILL from the kernel when its parent dies.
Init talks to the supervisor over one packet socket: `init PID`, then after `go` either `run` or
`fail STEP\\0REASON`, and `exit STATUS` at the end. Danger: none of these functions returns.
"""

import contextlib
import gc
import os
import select
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from mpi_trainer.local.pods import network, syscalls
from mpi_trainer.local.pods.mounts import Builder
from mpi_trainer.local.pods.pod import PodPlan
from mpi_trainer.local.pods.rootfs import Op

FORWARDED: Final = frozenset(
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT}
)
_NAMESPACES: Final = (
    syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
)


class PodEnds(Struct, frozen=True):
    """The pod's ends of what connects it with its supervisor."""

    link: socket.socket
    stdout: int
    stderr: int

    def kept(self, plan: PodPlan) -> tuple[int, ...]:
        """What a process of the pod must not close."""
        given = () if plan.stdin is None else (plan.stdin,)
        return self.link.fileno(), self.stdout, self.stderr, *given

    def close_output(self) -> None:
        os.close(self.stdout)
        os.close(self.stderr)


class PodStart(Struct, frozen=True):
    """All that a new pod's processes are given."""

    plan: PodPlan
    ops: tuple[Op, ...]
    scratch: str
    host: Callable[[str], str]


class Step:
    """The name of what is being done, for the message when it fails."""

    def __init__(self) -> None:
        self.name = "start"


def run_shim(birth: PodStart, ends: PodEnds, supervisor: int) -> NoReturn:
    """The child of the supervisor; never returns."""
    step = Step()
    try:
        detach(supervisor, keep=ends.kept(birth.plan))
        step.name = "unshare namespaces"
        syscalls.unshare(_NAMESPACES)
        alive, shim_alive = os.pipe()
        step.name = "fork"
        init = os.fork()
        if init == 0:
            os.close(shim_alive)
            _run_init(birth, ends, alive)
        ends.link.send(b"init %d" % init)
        ends.link.close()
        ends.close_output()
        _, status = os.waitpid(init, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    except BaseException as error:
        report(ends.link, step.name, error)
        os._exit(70)


def detach(parent: int, keep: tuple[int, ...]) -> None:
    """Make a fresh fork independent of what its parent had open, armed and scheduled."""
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(70)
    gc.disable()
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():  # Python ignores SIGPIPE, which exec would hand on
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, {*FORWARDED, signal.SIGCHLD})
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for entry in Path("/proc/self/fd").iterdir():
        fd = int(entry.name)
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):  # the directory's own descriptor is gone already
                os.close(fd)


def report(link: socket.socket, step: str, error: BaseException) -> None:
    with contextlib.suppress(OSError):
        link.send(b"fail " + f"{step}\0{_reason(error)}".encode(errors="surrogateescape"))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"


def _run_init(birth: PodStart, ends: PodEnds, shim_alive: int) -> NoReturn:
    step = Step()
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        # The parent is outside this PID namespace, so getppid cannot tell whether it still lives.
        if select.select([shim_alive], [], [], 0)[0]:
            os._exit(70)
        if ends.link.recv(16) != b"go":
            os._exit(70)
        _prepare(birth, step)
        step.name = "start the main process"
        main = spawn_main(birth.plan, ends)
        ends.link.send(b"run")
        ends.close_output()
        exit_like(reap_until_end_of(main), ends)
    except BaseException as error:
        report(ends.link, step.name, error)
        os._exit(70)


def _prepare(birth: PodStart, step: Step) -> None:
    plan = birth.plan
    step.name = "set the host name"
    syscalls.set_hostname(plan.hostname)
    step.name = "configure the network"
    network.configure_pod(plan.address)
    builder = Builder(birth.scratch, birth.host)
    step.name = "mount"
    umask = os.umask(0o022)
    builder.build(birth.ops)
    os.umask(umask)
    step.name = "change the root"
    builder.enter()


def exit_like(status: int, ends: PodEnds) -> NoReturn:
    """End this process as the main process ended, and tell the supervisor exactly how."""
    with contextlib.suppress(OSError):
        ends.link.send(b"exit %d" % status)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def spawn_main(plan: PodPlan, ends: PodEnds) -> int:
    """Start the main process; an exec that fails raises here. Not fork: that copies Python."""
    env = dict(plan.env)
    program = plan.argv[0]
    os.chdir(plan.cwd)
    found = program if "/" in program else shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(2, "No such file or directory on PATH", program)
    streams = {0: 0 if plan.stdin is None else plan.stdin, 1: ends.stdout, 2: ends.stderr}
    main = os.posix_spawn(
        found,
        plan.argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, source, number) for number, source in streams.items()],
        setsid=True,
        setsigmask=(),
    )
    os.chdir("/")
    return main


def reap_until_end_of(main: int) -> int:
    """Be an init: forward signals to the main process, reap every orphan, return main's status."""
    while True:
        info = signal.sigwaitinfo({*FORWARDED, signal.SIGCHLD})
        if info.si_signo != signal.SIGCHLD:
            os.kill(main, info.si_signo)
            continue
        status = reap(main)
        if status is not None:
            return status


def reap(main: int) -> int | None:
    """Collect every child that has ended; the status of the main process if it is among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == main:
            return status
        if pid == 0:
            return None
