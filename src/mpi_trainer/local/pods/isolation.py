"""How well this machine can isolate pods, found out by trying it in a child that then ends.

Best first: `root` and `rootless` are namespaces, `loopback` is plain processes. Guarantee: nothing
of the trial is left behind, and the reason names the setting to change where it is known. A process
with other threads is not forked: its child could wait for ever for a lock that one of them held, or
collect garbage of theirs, and finalizers of gRPC never end in a child.

`enter_user_namespace` and `mount_scratch` are the supervisor's own first steps, which the trial
takes too. The tmpfs at /run is seen by this process and its pods only and is freed by the kernel
with the last of them. Danger: from then on a path below the host's /run is found elsewhere;
`host_path` says where.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from mpi_trainer.local.errors import LocalError
from mpi_trainer.local.pods import cgroups, syscalls
from mpi_trainer.local.pods.netlink import Netlink, Peer

Kind = Literal["root", "rootless", "loopback"]

TRIAL_SECONDS: Final = 60.0

SCRATCH: Final = "/run/mpi-trainer.pods"
_HOST_RUN: Final = "/run/mpi-trainer.host"
_SWITCHES: Final = (  # file below /proc/sys, the value that forbids
    ("kernel/unprivileged_userns_clone", "0"),
    ("user/max_user_namespaces", "0"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
)


class Isolation(Struct, frozen=True):
    """`reason` says why it is not better and is empty where it is the best there is."""

    kind: Kind
    reason: str
    overlay: bool
    cgroups: cgroups.Support


def probe() -> Isolation:
    """Try the best kind that the caller's uid allows; LocalError where the trial does not end."""
    support = cgroups.detect()
    kind: Kind = "root" if os.geteuid() == 0 else "rootless"
    alone = len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 - of every start of a job
    answer = _in_child(lambda tell: _try(kind, tell)) if alone else _in_program(kind)
    steps = answer.splitlines()
    if steps[-1:] == ["ok"]:
        return Isolation(kind, "", "overlay" in steps, support)
    return Isolation("loopback", _why(kind, ": ".join(steps[-2:])), False, support)


def _try(kind: Kind, tell: Callable[[str], None]) -> None:
    """Do once, small, all that a sandbox with one pod does; raises at the first refusal."""
    if kind == "rootless":
        tell("user namespace")
        enter_user_namespace()
    tell("namespaces")
    syscalls.unshare(
        syscalls.CLONE_NEWNS
        | syscalls.CLONE_NEWNET
        | syscalls.CLONE_NEWPID
        | syscalls.CLONE_NEWUTS
        | syscalls.CLONE_NEWIPC
    )
    tell("mount")
    mount_scratch()
    tell("network bridge")
    with Netlink() as netlink:
        bridge = netlink.add_bridge("pods")
        tell("veth pair")
        netlink.add_veth("port0", bridge, Peer("eth0", b"\x02\0\0\0\0\1", os.getpid()))
    tell("/proc")
    pid = os.fork()
    if pid == 0:
        flags = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
        _exit_with(lambda: syscalls.mount("proc", "/proc", "proc", flags))
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise PermissionError(1, "a fresh /proc cannot be mounted")
    if _overlay_works():
        tell("overlay")
    tell("ok")


def _overlay_works() -> bool:
    for part in ("lower", "upper/new", "work"):
        Path("/run/trial", part).mkdir(parents=True)
    data = "lowerdir=/etc,upperdir=/run/trial/upper,workdir=/run/trial/work"
    try:
        syscalls.mount("overlay", "/run/trial/lower", "overlay", data=data)
    except OSError:
        return False
    return Path("/run/trial/lower/new").is_dir()


def _in_child(trial: Callable[[Callable[[str], None]], None]) -> str:
    """The lines that the trial wrote, the last with the error where it failed."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        syscalls.die_with_parent(signal.SIGKILL)

        def tell(line: str) -> None:
            os.write(theirs, f"{line}\n".encode())

        def run() -> None:
            try:
                trial(tell)
            except OSError as error:
                tell(f"{error.strerror}")

        _exit_with(run)
    os.close(theirs)
    with os.fdopen(ours) as reader:
        text = reader.read()
    os.waitpid(pid, 0)
    return text


def _in_program(kind: Kind) -> str:
    """The same from a process with threads: the child begins as a program of its own."""
    words = [sys.executable, "-P", "-m", __name__, kind]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=TRIAL_SECONDS,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        last = (error.stdout or b"").decode().splitlines()[-1:] or ["start"]
        raise LocalError(
            f"trying out namespaces did not end within {TRIAL_SECONDS:g} s (at: {last[0]})",
            "The machine is overloaded, or its kernel does not answer: see `dmesg`. Try again.",
        ) from error
    return done.stdout


def _program(kind: Kind) -> None:
    """Danger: this process is in other namespaces afterwards."""
    syscalls.die_with_parent(signal.SIGKILL)
    try:
        _try(kind, lambda line: print(line, flush=True))
    except OSError as error:
        print(error.strerror)


def _exit_with(action: Callable[[], None]) -> None:
    code = 1
    try:
        action()
        code = 0
    finally:
        os._exit(code)


def _why(kind: Kind, failure: str) -> str:
    for file, forbids in _SWITCHES if kind == "rootless" else ():
        path = Path("/proc/sys", file)
        if path.exists() and path.read_text().strip() == forbids:
            return f"user namespaces are forbidden here ({file.replace('/', '.')}={forbids})"
    who = "root may not" if kind == "root" else "this user may not"
    return f"{who} make namespaces here ({failure})"


def host_path(path: str) -> str:
    """Where the supervisor sees a path of the host: its own /run is the job's scratch."""
    if (path + "/").startswith("/run/") and not path.startswith((SCRATCH, _HOST_RUN)):
        return _HOST_RUN + path[len("/run") :]
    return path


def enter_user_namespace() -> None:
    """Keep the own uid and gid, gain all capabilities over what is unshared from now on."""
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def mount_scratch() -> None:
    """A tmpfs at /run that only this mount namespace sees, with the host's /run below it."""
    private = syscalls.MS_REC | syscalls.MS_PRIVATE
    syscalls.mount("", "/", "", private)
    syscalls.mount("tmpfs", "/tmp", "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, "mode=755")
    inside = Path("/tmp", Path(_HOST_RUN).name)
    inside.mkdir()
    syscalls.mount("/run", str(inside), "", syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.mount("/tmp", "/run", "", syscalls.MS_MOVE)
    Path(SCRATCH).mkdir()


if __name__ == "__main__":
    _program("root" if sys.argv[1] == "root" else "rootless")
