"""Signals, exit codes, time limits and jobs that stand still."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mpi_trainer.diagnose.rules.model import (
    BAD_TERMINATION,
    CRASH,
    EXCEPTION,
    EXITED,
    HINT,
    HOST,
    MPI_ERROR,
    RANK,
    SIGNALLED,
    SPECIFIC,
    STARTUP,
    Cause,
    Detail,
    Rule,
    said,
)

BY_SIGNAL: Final[Mapping[int, str]] = {
    2: "Interrupted",
    4: "RankIllegalInstruction",
    6: "RankAborted",
    7: "RankBusError",
    8: "RankArithmeticError",
    9: "RankKilled",
    11: "RankSegfault",
    15: "RankTerminated",
    24: "TimeLimit",
    25: "DiskQuotaExceeded",
}
"""By the number of the signal that ended a rank, on Linux."""

NOT_FOR_MEMORY: Final = (
    "Memory was not the reason: the kernel killed nothing for it there. Look at the events of the "
    "pod with `odh mpijob describe NAME`: it was stopped, a probe failed, or somebody sent the "
    "signal."
)
"""The remedy for `RankKilled` where the kernel counts what it kills for memory."""

CAUSES: Final = (
    Cause(
        "RankSegfault",
        "A rank used memory that is not its own (SIGSEGV)",
        "A fault in the program or one of its libraries: a null pointer, an index out of range, a "
        "stack that is too small, or libraries that do not belong together.",
        "Run it with `python -X faulthandler` or build with -g, and look at the first lines of the "
        "stack; try `ulimit -s unlimited` for Fortran.",
    ),
    Cause(
        "RankAborted",
        "A rank aborted itself (SIGABRT)",
        "An assertion failed, the heap is damaged, or an exception was not caught.",
        "Read the line above: it is the program's own. Build with -fsanitize=address where it "
        "speaks of the heap.",
    ),
    Cause(
        "HeapCorrupted",
        "A program has damaged its heap or stack",
        "It wrote beyond an array, or freed memory twice; glibc noticed later.",
        "Build with -fsanitize=address, or run a small case under valgrind; suspect extension "
        "modules of different compilers.",
        ("RankAborted",),
    ),
    Cause(
        "RankBusError",
        "A rank touched memory that has no storage behind it (SIGBUS)",
        "/dev/shm is full, or a mapped file became shorter.",
        "Mount an `emptyDir` with `medium: Memory` at /dev/shm of the workers.",
        ("SharedMemoryFull",),
    ),
    Cause(
        "RankArithmeticError",
        "A rank divided by zero (SIGFPE)",
        "An integer was divided by zero, or floating point traps are on.",
        "Build with -g -fbacktrace and correct the division that the stack shows.",
    ),
    Cause(
        "RankIllegalInstruction",
        "A rank ran an instruction that the processor does not know (SIGILL)",
        "The program was built for a newer processor, such as one with AVX-512.",
        "Build for the oldest node (-march=x86-64-v2), or choose nodes with `nodeSelector`.",
    ),
    Cause(
        "RankKilled",
        "A rank was killed (SIGKILL), or vanished",
        "Somebody or the kernel killed it without a word; most often it had used too much memory.",
        "Check `odh mpijob describe NAME` for OOMKilled, and raise `resources.limits.memory` "
        "(`--memory`) where memory was near its limit.",
    ),
    Cause(
        "RankTerminated",
        "A rank was told to end (SIGTERM)",
        "Its pod was stopped, evicted or preempted, or somebody ended the process.",
        "Look at the events of its pod: `odh mpijob describe NAME`; save checkpoints and set "
        "`runPolicy.backoffLimit` (`--retries`).",
    ),
    Cause(
        "Interrupted",
        "The program was interrupted (SIGINT)",
        "Somebody pressed Ctrl-C, or a launcher passed the signal on.",
        "Nothing is to be mended; start the job again.",
    ),
    Cause(
        "LauncherKilled",
        "mpirun itself was killed (SIGKILL)",
        "The launcher's container ran out of memory, or somebody killed it.",
        "Raise the launcher's `resources.limits.memory` (`--launcher-memory`), and see its "
        "container's state with `odh mpijob describe NAME`.",
    ),
    Cause(
        "LauncherTerminated",
        "mpirun was told to end (SIGTERM)",
        "The launcher's pod was deleted, evicted or preempted, or the job was stopped.",
        "Look at the events with `odh mpijob describe NAME`; start it again with `odh mpijob "
        "restart NAME`.",
    ),
    Cause(
        "TimeLimit",
        "The job reached its time limit",
        "MPIEXEC_TIMEOUT, `activeDeadlineSeconds` or a limit of the queue ended it.",
        "Raise the limit (`runPolicy.activeDeadlineSeconds`, MPIEXEC_TIMEOUT in `env`), or save "
        "checkpoints and go on from them.",
    ),
    Cause(
        "NoProgress",
        "The job runs and does nothing",
        "Ranks wait for one that has left, failed or never came; nothing they print says which.",
        "See where each rank is with `odh mpijob stack NAME`; run Python as `python -m mpi4py "
        "SCRIPT`, so that an exception ends all ranks.",
    ),
    Cause(
        "MpiInitFailed",
        "MPI could not start in the program",
        "MPI_Init failed; the lines below it say in which part.",
        "Check that program and mpirun are of one MPI (`--mpi`), and the network settings in "
        "`env`.",
        ("MpiError", "MpiLibraryMismatch"),
    ),
    Cause(
        "UnknownFailure",
        "The job failed, and nothing that it printed says why",
        "Only the exit code is known, and the last lines of the rank that ended first.",
        "Read the last lines: `odh mpijob logs NAME`; run the program once on this machine with "
        "`odh run`.",
    ),
)

RULES: Final = (
    # --- last words of processes
    Rule(
        "RankAborted",
        CRASH,
        "Assertion",
        r"Assertion [`'].{1,400}' failed|^Assertion failed",
        ("train: solver.c:88: step: Assertion `residual < 1e-6' failed.",),
    ),
    *said(
        "HeapCorrupted",
        CRASH,
        "double free or corruption",
        "free(): invalid",
        "malloc(): ",
        "corrupted size vs. prev_size",
        "stack smashing detected",
        "munmap_chunk(): invalid pointer",
        "realloc(): invalid",
        "free(): double free",
        "buffer overflow detected",
        "heap-buffer-overflow",
        "heap-use-after-free",
        "corrupted double-linked list",
        "malloc_consolidate(): ",
        "sysmalloc: Assertion",
        "heap-use-after-scope",
        "stack-buffer-overflow",
        "ERROR: AddressSanitizer",
    ),
    *said("RankAborted", CRASH - 1, "Fatal Python error: Aborted"),
    Rule(
        "RankAborted",
        CRASH - 1,
        "Check failed:",
        r"^(?:F\d{4} |\[?FATAL|.{0,80}\] )?.{0,120}Check failed: ",
        ("F0000 00:00:1 op.cc:12] Check failed: status == 0 (1 vs. 0)",),
    ),
    *said("RankSegfault", CRASH - 1, "Fatal Python error: Segmentation fault"),
    *said("RankBusError", CRASH - 1, "Fatal Python error: Bus error"),
    *said("RankArithmeticError", CRASH - 1, "Fatal Python error: Floating point exception"),
    *said(
        "RankIllegalInstruction",
        CRASH,
        "but these aren't available on your machine",
        "instructions, but these instructions are not available",
    ),
    Rule(
        "RankSegfault",
        SIGNALLED - 1,
        "fault",
        r"(?:^|: |\s)[Ss]egmentation fault(?: \(core dumped\)|$|:| occurred)",
        ("bash: line 1:    88 Segmentation fault      (core dumped) ./a.out", "Segmentation fault"),
    ),
    *said("RankSegfault", SIGNALLED - 1, "SIGSEGV"),
    *said("RankSegfault", SIGNALLED - 1, "Segmentation fault      (core dumped)"),
    Rule(
        "RankBusError",
        SIGNALLED - 1,
        "Bus error",
        r"(?:^|\s)Bus error(?:\s{1,20}\(core dumped\)|$)",
        ("Bus error (core dumped)", "bash: line 1:  8 Bus error               (core dumped) ./a"),
    ),
    Rule(
        "RankIllegalInstruction",
        SIGNALLED - 1,
        "instruction",
        r"(?:^|\s)Illegal instruction(?:\s{1,8}\(core dumped\)|$)",
        ("Illegal instruction (core dumped)",),
    ),
    Rule(
        "RankArithmeticError",
        SIGNALLED - 1,
        "Floating point exception",
        r"(?:^|\s)Floating point exception(?:\s{0,20}\(core dumped\)|$)",
        (
            "Floating point exception (core dumped)",
            "sh: 1: 8 Floating point exception(core dumped) a",
        ),
    ),
    Rule(
        "RankArithmeticError",
        SIGNALLED - 1,
        "SIGFPE",
        r"(?:received signal|forrtl: |signal )",
        ("Program received signal SIGFPE: Floating-point exception - erroneous arithmetic",),
    ),
    Rule(
        "RankKilled",
        SIGNALLED - 2,
        "Killed",
        r"^(?:\S{0,60}: line \d{1,6}: {1,8}\d{1,9} )?Killed(?: {2,}|$)",
        ("Killed", "/app/run.sh: line 3:    17 Killed                  python train.py"),
    ),
    Rule(
        "RankTerminated",
        EXITED + 2,
        "Terminated",
        r"^\S{1,200}: line \d{1,6}: {1,8}\d{1,9} Terminated {2,}",
        ("bash: line 1: 12345 Terminated              ./solver",),
    ),
    Rule(
        "TimeLimit",
        SIGNALLED - 1,
        "CPU time limit exceeded",
        examples=("bash: line 1: 12345 CPU time limit exceeded ./solver",),
    ),
    Rule(
        "DiskQuotaExceeded",
        SIGNALLED - 1,
        "File size limit exceeded",
        examples=("bash: line 1: 12345 File size limit exceeded ./solver",),
    ),
    Rule(
        "RankSegfault",
        CRASH,
        "fatal error has been detected by the Java Runtime",
        examples=("# A fatal error has been detected by the Java Runtime Environment:",),
    ),
    Rule(
        "RankAborted",
        SIGNALLED - 1,
        "Aborted",
        r"(?:^|\s)Aborted(?:\s{1,20}\(core dumped\)|$)",
        ("Aborted (core dumped)",),
    ),
    Rule(
        "Interrupted",
        EXITED,
        "KeyboardInterrupt",
        r"^KeyboardInterrupt",
        ("KeyboardInterrupt",),
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED - 1,
        "Caught signal",
        r"Caught signal (?P<signal>\d{1,2})\b",
        ("Caught signal 15 in the training loop",),
    ),
    Rule(
        BAD_TERMINATION,
        EXITED - 1,
        "srun: error:",
        rf"srun: error: {HOST}: tasks? \d[-\d,]{{0,80}}: Exited with exit code (?P<code>\d{{1,3}})",
        ("srun: error: n1: task 1: Exited with exit code 1",),
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED - 1,
        "died from signal",
        rf"^{HOST}: rank {RANK} died from signal (?P<signal>\d{{1,2}})",
        ("n1.cm.example.org: rank 27421 died from signal 6",),
    ),
    # --- limits of time
    *said(
        "TimeLimit",
        STARTUP,
        "time limit for job execution has been reached",
        "APPLICATION TIMED OUT",
        "job ending due to application timeout",
        "job ending due to timeout",
        "DUE TO TIME LIMIT",
        "Job was active longer than specified deadline",
        "DeadlineExceeded",
        "TERM_RUNLIMIT",
        despite_success=True,
    ),
    Rule(
        "TimeLimit",
        STARTUP,
        "TIMEOUT",
        r"MPIEXEC_TIMEOUT|I_MPI_JOB_TIMEOUT",
        ("  MPIEXEC_TIMEOUT: 4 seconds",),
    ),
    Rule(
        "TimeLimit",
        SPECIFIC,
        "timeout: sending signal",
        examples=("timeout: sending signal TERM to command 'python'",),
    ),
    Rule(
        "TimeLimit",
        EXCEPTION - 1,
        "TimeoutError",
        r"^(?:[\w.]{1,120}\.)?(?:TimeoutError|TimeoutExpired|FunctionTimedOut)\b",
        ("TimeoutError: step took longer than 600 s",),
    ),
    # --- stack dumps of processes that stand still
    Rule(
        "NoProgress",
        MPI_ERROR - 5,
        "Timeout (",
        r"^Timeout \(\d{1,4}:\d{2}:\d{2}(?:\.\d{1,9})?\)!",
        ("Timeout (0:05:00)!",),
    ),
    *said("NoProgress", HINT, "appears to be stalled", "no progress for"),
)

DETAILS: Final[tuple[Detail, ...]] = ()
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ()
