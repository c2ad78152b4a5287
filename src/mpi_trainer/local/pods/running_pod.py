"""One running pod, seen from its supervisor.

The pod is gone when its shim is: `pidfd` is the shim's and is readable from then on. `wait` may be
called any number of times. The memory figures stay readable after the end and after `release`.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from mpi_trainer.local.errors import StartError
from mpi_trainer.local.pods.cgroups import PodGroup
from mpi_trainer.local.pods.pod import ExitStatus
from mpi_trainer.local.pods.shim import PodEnds

START_SECONDS: Final = 20.0


class ShimPod:
    """A `RunningPod` of a shim, its init and a link to it."""

    def __init__(
        self, name: str, shim: int, link: socket.socket, output: tuple[int, int], scratch: str
    ) -> None:
        self.name = name
        self.link = link
        self.stdout, self.stderr = output
        self.share = f"{scratch}/share"
        self.pid = shim
        self.pidfd = os.pidfd_open(shim)
        self.shim = shim
        self._init: int | None = None
        self._scratch = scratch
        self._group: PodGroup | None = None
        self._status: ExitStatus | None = None
        self._open = True

    def set_init(self, pid: int) -> None:
        """The pod's init is known from now on."""
        self.pid = pid
        self._init = os.pidfd_open(pid)

    def receive(self, word: bytes, deadline: float) -> bytes:
        """The rest of the next message, which must start with `word`; any other is an error."""
        remaining = max(0.0, deadline - time.monotonic())
        if not select.select([self.link], [], [], remaining)[0]:
            raise StartError(self.name, "start", f"no answer within {START_SECONDS:.0f} seconds")
        kind, _, rest = self.link.recv(65536).partition(b" ")
        if kind == word:
            return rest
        if kind == b"fail":
            step, _, reason = rest.decode(errors="replace").partition("\0")
            raise StartError(self.name, step, reason)
        raise StartError(self.name, "start", "the pod's first process was killed")

    def limit(self, group: PodGroup | None) -> None:
        self._group = group

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def wait(self) -> ExitStatus:
        if self._status is None:
            _, status = os.waitpid(self.shim, 0)
            if os.WIFSIGNALED(status) and self._init is not None:
                # The shim itself was killed; its init dies with it and is this process's to reap.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self.pid, 0)
            self._status = self._reported() or ExitStatus(signal=signal.SIGKILL)
            if self._group is not None:
                self._group.close()
        return self._status

    def oom_kills(self) -> int | None:
        return self._group.oom_kills() if self._group is not None else None

    def peak_memory(self) -> int | None:
        return self._group.peak_memory() if self._group is not None else None

    def release(self) -> None:
        if not self._open:
            return
        self.kill()
        self.wait()
        self._open = False
        self.link.close()
        for fd in (self.stdout, self.stderr, self.pidfd, self._init):
            if fd is not None:
                os.close(fd)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _send(self, number: signal.Signals) -> None:
        if not self._open:
            return
        target = self._init if self._init is not None else self.pidfd
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(target, number)

    def _reported(self) -> ExitStatus | None:
        """What init said last; nothing where it was killed itself."""
        with contextlib.suppress(OSError):
            message = self.link.recv(64, socket.MSG_DONTWAIT)
            if message.startswith(b"exit "):
                return ExitStatus.of_wait(int(message[5:]))
        return None


def release_all(pods: Sequence[ShimPod]) -> None:
    """All are told to end before the first is waited for."""
    for pod in pods:
        pod.kill()
    for pod in pods:
        pod.release()


M = TypeVar("M", bound=ShimPod)


def spawn(kind: type[M], name: str, scratch: str, child: Callable[[PodEnds], NoReturn]) -> M:
    """Fork a shim that runs `child`, connected by a packet socket and two output pipes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stdout, stdout_in = os.pipe()
    stderr, stderr_in = os.pipe()
    ends = PodEnds(theirs, stdout_in, stderr_in)
    shim = os.fork()
    if shim == 0:
        child(ends)
    theirs.close()
    ends.close_output()
    os.set_blocking(stdout, False)
    os.set_blocking(stderr, False)
    return kind(name, shim, ours, (stdout, stderr), scratch)
