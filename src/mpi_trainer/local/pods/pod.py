"""What a pod on this machine is, and what can be done with one that runs.

All values are frozen and say nothing about how the pod is isolated: `sandbox` makes it of
namespaces, `loopback` of plain processes, and both are a `PodHost`. A pod ends as a whole when
its main process ends, as a container does.
"""

from typing import Final, Protocol

from msgspec import Struct

MPI_FOLDER: Final = "/run/mpi"
"""where pods see an MPI whose own path no shell would take"""


class PodFile(Struct, frozen=True):
    path: str
    mode: int
    content: bytes


class PodMount(Struct, frozen=True):
    """A host path shown at `target`; no source means an empty directory of the pod's own."""

    source: str | None
    target: str
    read_only: bool = False


class PodLimits(Struct, frozen=True):
    memory_bytes: int | None = None
    cpus: float | None = None


class PodPlan(Struct, frozen=True):
    """`stdin` is a descriptor of whoever starts the pod; without one its programs read nothing."""

    name: str
    hostname: str
    address: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    hosts: str = "127.0.0.1 localhost\n"
    files: tuple[PodFile, ...] = ()
    mounts: tuple[PodMount, ...] = ()
    shm_bytes: int | None = None
    limits: PodLimits = PodLimits()
    stdin: int | None = None


class ExitStatus(Struct, frozen=True):
    """How the main process ended: exactly one of the two is set."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of_wait(cls, status: int) -> "ExitStatus":
        """From the status that waitpid gives: the signal in the low byte, or the code above it."""
        if status & 0x7F:
            return cls(signal=status & 0x7F)
        return cls(code=status >> 8)


class PodPaths(Struct, frozen=True):
    """Where things are, as the processes of one pod see them.

    `prefix` is empty where the pod has its own view of the file system, and so is `common`, which
    is put before what all pods of a job see at one path.
    """

    prefix: str
    share: str
    tmp: str
    common: str = ""

    def file(self, path: str) -> str:
        """The path at which a file planned for the absolute `path` is found."""
        return self.prefix + path


class RunningPod(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def pid(self) -> int:
        """The pod's first process, as the supervisor sees it."""

    @property
    def pidfd(self) -> int:
        """Readable once the pod is gone completely; `wait` does not block then."""

    @property
    def stdout(self) -> int:
        """Non-blocking; belongs to the pod until `release`."""

    @property
    def stderr(self) -> int: ...

    @property
    def share(self) -> str:
        """The supervisor's path of the directory that the pod sees at `Paths.share`."""

    def terminate(self) -> None:
        """SIGTERM to the main process."""

    def kill(self) -> None:
        """End every process of the pod at once."""

    def wait(self) -> ExitStatus: ...

    def oom_kills(self) -> int | None: ...

    def peak_memory(self) -> int | None: ...

    def release(self) -> None:
        """Kill it if it runs, and give back its descriptors, directory and control group."""


class PodHost(Protocol):
    @property
    def not_applied(self) -> tuple[str, ...]:
        """What this machine cannot give to pods, one line each, with the reason."""

    @property
    def port(self) -> int:
        """Where every pod's sshd listens, at the pod's own address."""

    def address(self, index: int) -> str: ...

    def paths(self, name: str) -> PodPaths: ...

    def start(self, plans: tuple[PodPlan, ...]) -> tuple[RunningPod, ...]:
        """Start all at once; when one fails, none is left. Danger: the pods die with the thread
        that called this, so call it from one that lives as long as they shall."""

    def close(self) -> None: ...
