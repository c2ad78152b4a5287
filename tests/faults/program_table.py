"""Faults in the program itself, its data and its files, as data: each runs on one MPI, so that all
MPIs have their share. See `table.py` for what the fields mean."""

from __future__ import annotations

from tests.faults import injections
from tests.faults.table import (
    STARTING_SECONDS,
    Fault,
    Inject,
    all_alike,
    nobody,
    victim,
    with_library,
)

SYNTAX = "from mpi4py import MPI\n\ndef step(batch)\n    return batch * MPI.COMM_WORLD.size\n"
# The header of a program for arm64, which no machine of these tests is.
ARM = "\x7fELF\2\1\1" + 9 * "\0" + "\2\0\xb7\0\1\0\0\0" + 40 * "\0" + "\n"
CHECKS = "test -d /data/train || (echo 'error: /data/train is not mounted' >&2; exit 2)"


def program(name: str, mpi: str, *causes: str, what: str, plain: bool = False) -> Fault:
    """A fault on rank 1. `plain`: without `-m mpi4py`, so that the other ranks wait for ever."""
    runner = () if plain else ("-m", "mpi4py")
    command = ("python", *runner, "/state/faulty.py", name)
    return Fault(name, what, victim(), causes, command, mpis=(mpi,))


def in_c(name: str, mpi: str, *causes: str, what: str) -> Fault:
    return Fault(name, what, victim(), causes, ("/state/faulty", name), mpis=(mpi,))


def hurt(fault: Fault, inject: Inject) -> Fault:
    """With something done to worker 1 before mpirun starts."""
    return fault.changed(inject=inject, at_start=True)


def alike(name: str, mpi: str, *causes: str, what: str, command: tuple[str, ...]) -> Fault:
    """All ranks fail alike, or none begins."""
    return Fault(name, what, all_alike(), causes, command, STARTING_SECONDS, mpis=(mpi,))


PROGRAM_FAULTS = (
    # --- what is not there, or does not fit
    program("module-missing", "openmpi", "ModuleMissing", what="a module is not installed"),
    program(
        "module-incompatible", "mpich", "ModuleIncompatible", what="NumPy has no such name any more"
    ),
    program(
        "shared-library-missing",
        "intel",
        "SharedLibraryMissing",
        what="a library that ctypes loads is missing",
    ),
    alike(
        "wrong-mpi-library",
        "openmpi4",
        "MpiLibraryMismatch",
        what="the program finds another MPI's library than mpirun's",
        command=with_library("mpich", "mpich", "run"),
    ),
    alike(
        "syntax-error",
        "openmpi4",
        "ProgramSyntaxError",
        what="the program is not valid Python",
        command=("python", "/state/broken.py"),
    ).changed(files={"broken.py": SYNTAX}),
    alike(
        "wrong-option",
        "mpich",
        "ProgramUsage",
        what="an option of the program is misspelt",
        command=("python", "/state/usage.py", "--epohcs", "3"),
    ),
    alike(
        "program-misspelt",
        "intel",
        "ProgramNotFound",
        what="the program's name is misspelt",
        command=("pyhton", "/state/faulty.py"),
    ),
    alike(
        "script-missing",
        "openmpi",
        "ScriptNotFound",
        what="the script does not exist",
        command=("python", "/state/trian.py"),
    ),
    alike(
        "wrong-architecture",
        "mpich",
        "ProgramWrongArchitecture",
        what="the program was built for another processor",
        command=("/state/solver",),
    ).changed(files={"solver": ARM}),
    Fault(
        "script-refuses",
        "the launcher's script finds its data missing before it calls mpirun",
        nobody(),
        ("ProgramReportedError",),
        ("sh", "-c", CHECKS),
        by_mpirun=False,
        mpis=("openmpi",),
    ),
    program("variable-missing", "intel", "ConfigurationInvalid", what="a variable is not set"),
    # --- files, disks, memory
    program("file-missing", "openmpi4", "FileMissing", what="an input file does not exist"),
    program(
        "permission-denied", "mpich", "FilePermissionDenied", what="a file belongs to another user"
    ),
    hurt(
        program("read-only", "openmpi", "ReadOnlyFileSystem", what="a volume is read-only"),
        injections.read_only_disk,
    ),
    hurt(
        program("disk-full", "openmpi4", "DiskFull", what="a volume is full"),
        injections.small_disk,
    ),
    hurt(
        program(
            "shared-memory-full",
            "openmpi4",
            "RankBusError",
            "SharedMemoryFull",
            what="/dev/shm is too small",
            plain=True,
        ),
        injections.small_shared_memory,
    ),
    program("memory-error", "mpich", "OutOfMemory", what="an array does not fit in memory"),
    program("open-files", "intel", "OpenFilesLimit", what="too many files are open"),
    # --- data and numbers
    program("shapes", "openmpi", "ShapeMismatch", what="matrices cannot be multiplied"),
    program("broadcast", "mpich", "ShapeMismatch", what="a batch is smaller than the others"),
    program("reshape", "intel", "ShapeMismatch", what="an array cannot have that shape"),
    program("loss-is-nan", "openmpi4", "NumbersDiverged", what="the loss is not a number"),
    program(
        "floating-point-error", "openmpi", "NumbersDiverged", what="NumPy raises on infinite values"
    ),
    program("key-error", "mpich", "ProgramException", what="a record lacks a field", plain=True),
    program("bad-json", "intel", "DataInvalid", what="a JSON file is cut"),
    program("bad-csv", "openmpi4", "DataInvalid", what="a table holds a word instead of a number"),
    program("encoding", "openmpi", "DataInvalid", what="a text is not UTF-8"),
    program("cut-archive", "mpich", "DataInvalid", what="a compressed file is cut"),
    program(
        "damaged-checkpoint",
        "intel",
        "CheckpointMismatch",
        "DataInvalid",
        what="a checkpoint is a web page",
    ),
    # --- other services
    program("address-in-use", "openmpi4", "AddressInUse", what="a port is taken"),
    program("name-unknown", "openmpi", "NameResolution", what="a data source's name is unknown"),
    program(
        "connection-refused", "mpich", "SourceUnreachable", what="nothing listens at a data source"
    ),
    program("token-refused", "intel", "CredentialsRefused", what="a data source answers 401"),
    program("access-forbidden", "openmpi4", "CredentialsRefused", what="a data source answers 403"),
    program("object-missing", "openmpi", "SourceMissing", what="a data source answers 404"),
    program("too-many-requests", "mpich", "SourceThrottled", what="a data source answers 429"),
    program("source-broken", "intel", "SourceUnreachable", what="a data source answers 503"),
    program("source-silent", "openmpi", "SourceUnreachable", what="a data source never answers"),
    # --- the program's own
    program("own-exception", "mpich", "ProgramException", what="an exception of its own class"),
    program("recursion", "openmpi", "ProgramException", what="a function calls itself for ever"),
    program("child-failed", "intel", "ProgramException", what="a command that it runs fails"),
    program(
        "exit-with-words",
        "openmpi4",
        "ProgramReportedError",
        "RankExitedNonZero",
        what="sys.exit with a sentence",
        plain=True,
    ),
    in_c("null-pointer", "mpich", "RankSegfault", what="a C program uses a null pointer"),
    in_c("divide-by-zero", "openmpi", "RankArithmeticError", what="a C program divides by zero"),
    in_c("illegal-instruction", "intel", "RankIllegalInstruction", what="a C program traps"),
    in_c("assertion", "openmpi4", "RankAborted", what="an assertion of a C program fails"),
    in_c("double-free", "mpich", "HeapCorrupted", what="a C program frees a block twice"),
    in_c("says-error", "intel", "ProgramReportedError", what="it says why, and calls MPI_Abort"),
    # --- it stands still
    Fault(
        "deadlock-until-deadline",
        "rank 1 waits for a message that nobody sends, until activeDeadlineSeconds",
        nobody(),
        ("TimeLimit",),
        ("python", "/state/faulty.py", "other-collective"),
        policy={"activeDeadlineSeconds": 10},
        mpis=("openmpi4",),
    ),
    Fault(
        "deadlock-until-timeout",
        "the same, until mpirun's own time limit",
        nobody(),
        ("TimeLimit",),
        ("python", "/state/faulty.py", "other-collective"),
        options=("--timeout", "8"),
        mpis=("openmpi",),
    ),
    program(
        "stack-dump",
        "mpich",
        "NoProgress",
        what="a program that shows its stack and leaves where a step takes too long",
        plain=True,
    ),
)
