"""Every fault as data: what goes wrong, when it must be over, and what must be said about it.

`reasons` are the accepted ones of the agent, none where any will do, and `causes` those of the
finding, by their names in the catalogue; `rank` and `host` what must be blamed, None and "" where
nobody is to blame, ANY where all fail alike. `names_host`: the host must be named, but need not be
the only one. `may_succeed`: MPI may cope with it, which is then no failure. A label for one MPI
only stands in `otherwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from tests.faults import injections
from tests.faults.scene import VICTIM, Scene

RUNNING_SECONDS = 30.0
STARTING_SECONDS = 120.0

OPEN_MPI = ("openmpi", "openmpi4", "openmpi4-debian")
HYDRA = ("mpich", "mpich4-debian", "intel")
MPIS = (*OPEN_MPI, *HYDRA)

ANY = -1  # whichever came first, or none

# A rank ended badly, and the launcher after it; or the agent saw that it would not.
KILLED = ("RankKilled", "RankDied")
FAILED = ("RankFailed", "RankDied")
LOST = ("DaemonLost", "WorkerLost", "ConnectionLost")

Inject = Callable[[Scene, str], None]


class Label(msgspec.Struct, frozen=True):
    """What must be found out. `state` Succeeded: this MPI copes, and must not be blamed."""

    reasons: tuple[str, ...] = ()
    rank: int | None = None
    host: str = ""
    names_host: bool = False
    may_succeed: bool = False
    state: Literal["Failed", "Succeeded"] = "Failed"


class Fault(msgspec.Struct, frozen=True):
    """`command` is the rank's, after `mpirun -n N`; `options` go before it. `inject` happens
    while the ranks work, or, with `at_start`, when the launcher is about to call mpirun.

    `policy` is of the job's runPolicy, `files` lie in /state. Without `by_mpirun` the command is
    the launcher's own."""

    name: str
    what: str
    label: Label
    causes: tuple[str, ...]
    command: tuple[str, ...]
    seconds: float = RUNNING_SECONDS
    options: tuple[str, ...] = ()
    ranks: int = 3
    inject: Inject | None = None
    at_start: bool = False
    memory: str = ""
    policy: Mapping[str, Any] = {}
    files: Mapping[str, str] = {}
    by_mpirun: bool = True
    mpis: tuple[str, ...] = MPIS
    otherwise: Mapping[str, Label] = {}

    def changed(self, **changes: Any) -> Fault:
        return msgspec.structs.replace(self, **changes)

    def label_for(self, mpi: str) -> Label:
        return self.otherwise.get(mpi, self.label)


def python(word: str) -> tuple[str, ...]:
    return ("python", "/state/rank.py", word)


def c(word: str) -> tuple[str, ...]:
    return ("/state/rank", word)


def with_library(other: str, abi: str, word: str) -> tuple[str, ...]:
    """The rank finds another MPI's library; `{other}` is filled in with its prefix."""
    return (
        "env",
        f"PATH={{{other}}}/bin:/usr/bin:/bin",
        f"LD_LIBRARY_PATH={{{other}}}/lib",
        f"OPAL_PREFIX={{{other}}}",
        f"MPI4PY_MPIABI={abi}",
        "{python}",
        "/state/rank.py",
        word,
    )


RUN = python("run")


def victim(*reasons: str) -> Label:
    return Label(reasons, rank=1, host=VICTIM)


def worker(*reasons: str) -> Label:
    return Label(reasons, host=VICTIM)


def nobody(*reasons: str) -> Label:
    return Label(reasons)


def all_alike(*reasons: str) -> Label:
    return Label(reasons, rank=ANY)


FAULTS = (
    Fault(
        "c-abort-signal",
        "rank 1 of a C program aborts",
        victim(*KILLED),
        ("RankAborted",),
        c("c-abort-signal"),
    ),
    Fault(
        "c-exit-without-finalize",
        "rank 1 of a C program leaves with 0 while the others wait",
        victim("RankLeft"),
        ("RankExitedEarly",),
        c("c-exit-without-finalize"),
    ),
    Fault(
        "c-invalid-rank",
        "rank 1 of a C program sends to a rank that does not exist",
        victim(*FAILED),
        ("MpiError",),
        c("c-invalid-rank"),
    ),
    Fault(
        "c-truncate",
        "rank 1 of a C program gets more than its buffer holds",
        victim(*FAILED),
        ("MpiError",),
        c("c-truncate"),
    ),
    Fault(
        "exit-nonzero",
        "rank 1 leaves with 3, unfinalized",
        victim(*FAILED),
        ("RankExitedNonZero",),
        python("exit-nonzero"),
    ),
    Fault(
        "mpi-abort",
        "rank 1 calls MPI_Abort with 42",
        victim(*FAILED),
        ("MpiAbort",),
        python("mpi-abort"),
    ),
    Fault(
        "mpi-error-truncate",
        "rank 1 gets more than its buffer holds (a Python exception)",
        victim("RankStuck", *FAILED),
        ("MpiError",),
        python("mpi-error-truncate"),
    ),
    Fault(
        "oom-kill",
        "rank 1 passes its worker's memory limit",
        victim("OutOfMemory"),
        ("OutOfMemory",),
        python("oom-kill"),
        memory="300Mi",
    ),
    Fault(
        "python-traceback",
        "a Python exception on rank 1 while the others wait",
        victim("RankStuck", *FAILED),
        ("ProgramException",),
        python("python-traceback"),
    ),
    Fault(
        "python-traceback-m-mpi4py",
        "the same under `python -m mpi4py`",
        victim(*FAILED),
        ("ProgramException",),
        ("python", "-m", "mpi4py", "/state/rank.py", "python-traceback"),
    ),
    Fault(
        "rank-sigkill", "rank 1 is killed", victim(*KILLED), ("RankKilled",), python("rank-sigkill")
    ),
    Fault(
        "rank-sigterm",
        "rank 1 gets SIGTERM",
        victim(*KILLED),
        ("RankTerminated",),
        python("rank-sigterm"),
    ),
    Fault(
        "segfault", "rank 1 reads address 0", victim(*KILLED), ("RankSegfault",), python("segfault")
    ),
    Fault(
        "sys-exit",
        "rank 1 calls sys.exit(3)",
        victim("RankStuck", *FAILED),
        ("RankExitedNonZero",),
        python("sys-exit"),
    ),
    Fault(
        "daemon-killed",
        "the MPI daemon of worker 1 is killed",
        worker(*LOST, "DaemonFailed"),
        ("WorkerLost", "MpiDaemonFailed"),
        RUN,
        inject=injections.kill_daemon,
    ),
    Fault(
        "sshd-session-killed",
        "the SSH sessions of worker 1 are killed; its ranks live",
        Label(LOST, host=VICTIM, may_succeed=True),
        ("WorkerLost",),
        python("work"),
        inject=injections.kill_ssh_sessions,
    ),
    Fault(
        "sshd-killed",
        "the SSH server of worker 1 is killed",
        worker("WorkerPodFailed", "WorkerLost"),
        ("WorkerLost", "SshServerFailed"),
        RUN,
        inject=injections.kill_ssh_listener,
    ),
    Fault(
        "worker-gone",
        "every process of worker 1 is killed",
        worker("WorkerPodFailed", "WorkerLost"),
        ("WorkerLost",),
        RUN,
        inject=injections.kill_worker,
    ),
    Fault(
        "worker-unreachable-mid-run",
        "worker 1 loses its network, and nobody is told",
        worker("WorkerLost"),
        ("WorkerLost",),
        RUN,
        inject=injections.cut_link,
    ),
    Fault(
        "worker-unreachable-at-start",
        "worker 1 has no network when mpirun starts",
        worker("WorkerLost", "DaemonFailed", "WorkersMissing"),
        ("WorkerLost", "WorkerUnreachable"),
        RUN,
        STARTING_SECONDS,
        inject=injections.cut_link,
        at_start=True,
    ),
    Fault(
        "connection-refused",
        "worker 1 refuses new SSH connections when mpirun starts; the one to it exists",
        Label(state="Succeeded"),
        (),
        python("work"),
        STARTING_SECONDS,
        inject=injections.refuse_ssh,
        at_start=True,
    ),
    Fault(
        "ranks-cannot-connect",
        "worker 1 cannot open connections from and to the other workers",
        Label(("Unreachable",), host=VICTIM, names_host=True),
        ("WorkerUnreachable", "RankNetworkBlocked"),
        RUN,
        STARTING_SECONDS,
        inject=injections.block_other_workers,
        at_start=True,
    ),
    Fault(
        "mpi-missing-on-worker",
        "worker 1 lacks the MPI daemon",
        worker("DaemonFailed"),
        ("MpiMissingOnWorker",),
        RUN,
        STARTING_SECONDS,
        inject=injections.hide_mpi,
        at_start=True,
    ),
    Fault(
        "program-missing-on-one-worker",
        "worker 1 lacks the program",
        worker(*FAILED, "StartFailed"),
        ("ProgramNotFound",),
        ("/state/bin/rank", "run"),
        STARTING_SECONDS,
        inject=injections.hide_program,
        at_start=True,
    ),
    Fault(
        "program-not-found",
        "no worker has the program",
        all_alike(*FAILED, "CommandFailed", "StartFailed"),
        ("ProgramNotFound",),
        ("/state/none", "run"),
    ),
    Fault(
        "program-not-executable",
        "the program is a file without the x bit",
        all_alike(*FAILED, "CommandFailed", "StartFailed"),
        ("ProgramNotExecutable",),
        ("/state/rank.py", "run"),
    ),
    Fault(
        "hostfile-missing",
        "mpirun is given a hostfile that does not exist",
        nobody("CommandFailed"),
        ("HostfileMissing",),
        RUN,
        options=("--hostfile", "/etc/mpi/none"),
    ),
    Fault(
        "not-enough-slots",
        "8 ranks on 3 slots",
        nobody("CommandFailed"),
        ("NotEnoughSlots",),
        python("hello"),
        ranks=8,
        otherwise=dict.fromkeys(HYDRA, Label(state="Succeeded")),
    ),
    Fault(
        "library-mismatch",
        "the ranks' MPI library is another implementation's",
        all_alike(*FAILED, "WorldsOfOne"),
        ("MpiLibraryMismatch",),
        with_library("mpich", "mpich", "run"),
        mpis=OPEN_MPI,
    ),
    Fault(
        "library-mismatch-singletons",
        "the ranks' MPI library is another's: each is a world of its own, and ends with 0",
        all_alike("WorldsOfOne"),
        ("MpiLibraryMismatch",),
        with_library("openmpi4-debian", "openmpi", "hello"),
        mpis=HYDRA,
    ),
)
