"""Horovod, torch.distributed, Gloo, DeepSpeed: ranks that wait, disagree, or lose each other."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    BAD_TERMINATION,
    EXCEPTION,
    EXITED,
    FOLLOWS,
    HINT,
    HOST,
    RANK,
    SPECIFIC,
    Cause,
    Detail,
    Rule,
    said,
)

CAUSES: Final = (
    Cause(
        "CollectiveMismatch",
        "Ranks do not call the same collective operation",
        "One rank entered another operation, or the same one with another shape or type, so that "
        "nobody can finish.",
        "Let all ranks take the same branches and call collectives in the same order with the "
        "same shapes; `odh mpijob stack NAME` shows where each one is.",
        ("NoProgress", "ProgramException"),
    ),
    Cause(
        "CollectiveTimeout",
        "Ranks waited too long for each other",
        "A collective did not finish in time: one rank is slow, has failed, or never came.",
        "Find the rank that did not come (`odh mpijob stack NAME`); where it is only slow, raise "
        "the time-out of init_process_group, or HOROVOD_STALL_SHUTDOWN_TIME_SECONDS.",
        ("NoProgress", "TimeLimit"),
    ),
    Cause(
        "RendezvousFailed",
        "Ranks did not find each other at the start",
        "The master's address or port is wrong or blocked, or not all ranks have started.",
        "Check MASTER_ADDR, MASTER_PORT and WORLD_SIZE in `env`, and that network policies allow "
        "the port between the job's pods.",
        ("RankNetworkBlocked", "TimeLimit", "ProgramException"),
    ),
    Cause(
        "HorovodShutdown",
        "Horovod was shut down by another rank's failure",
        "This rank is not the one that failed; another raised an exception or ended early.",
        "Read the first traceback of the job, of another rank: `odh mpijob logs NAME`.",
        ("ProgramException",),
    ),
    Cause(
        "PeerLost",
        "A rank lost the connection to another",
        "The other one has ended; why, only its own output says.",
        "Read the output of the rank that ended first: `odh mpijob logs NAME`.",
        ("ProgramException", "WorkerLost"),
    ),
)

# What ranks say that have waited for one with an exception, which weighs more.
_WAITED = EXCEPTION - 2

RULES: Final = (
    Rule(
        "CollectiveMismatch",
        SPECIFIC,
        "Mismatched ",
        r"Mismatched \w{1,20} (?:tensor shapes|operations|data types|CPU/GPU|root ranks|reduce op)",
        ("Mismatched allreduce tensor shapes: One rank sent an allreduce with shape [3]",),
    ),
    *said(
        "CollectiveMismatch",
        SPECIFIC,
        "Detected mismatch between collectives on ranks",
        "Mismatched MPI operations",
        "MPI_Allreduce operation mismatch",
        "Collective operation mismatch",
        "Mismatched collective",
        "DDP expects same model across all ranks",
    ),
    # The first rank writes it of those that have not come; lines below it name them.
    Rule(
        "CollectiveTimeout",
        EXCEPTION - 1,
        "submitted to be reduced, gathered or broadcasted by subset of ranks",
        examples=(
            "One or more tensors were submitted to be reduced, gathered or broadcasted by subset "
            "of ranks and are waiting for remainder of ranks for more than 60 seconds.",
        ),
        of_others=True,
    ),
    Rule(
        "CollectiveTimeout",
        _WAITED,
        "Watchdog caught collective operation timeout",
        rf"(?:\[Rank {RANK}\] )?Watchdog caught collective operation timeout",
        (
            "[E ProcessGroupNCCL.cpp:474] [Rank 7] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=18, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800116 ms",
        ),
    ),
    *said(
        "CollectiveTimeout",
        _WAITED,
        "Some NCCL operations have failed or timed out",
        "Timed out waiting for operation to complete",
        "Timeout occurred while waiting for collective",
        "Application timeout caused pair closure",
        "exceeded HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
    ),
    Rule(
        "CollectiveTimeout",
        _WAITED,
        "Timed out waiting ",
        r"Timed out waiting \d{1,9}ms for (?:recv|send|synchronize)",
        (
            "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800ms for "
            "recv operation to complete",
        ),
    ),
    *said(
        "RendezvousFailed",
        _WAITED,
        "Timed out initializing process group",
        "waiting for clients.",
        "client socket has failed to connect to any network address",
        "client socket has timed out after",
        "RendezvousTimeoutError",
        "RendezvousConnectionError",
        "Rendezvous timed out",
        "failed to rendezvous",
        "Gloo connectFullMesh failed",
        "RendezvousClosedError",
        "NoValidAddressesFound",
        "unable to connect to any of the following addresses",
        "Please check connectivity between servers.",
    ),
    Rule(
        "RendezvousFailed",
        SPECIFIC - 4,
        "environment variable",
        r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected",
        (
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
            "variable RANK expected, but not set",
        ),
    ),
    Rule(
        "RendezvousFailed",
        _WAITED,
        "The client socket has failed to connect to [",
        r"failed to connect to \[[^\]]{1,253}\]:\d{1,5} \(errno: 11[03] ",
        (
            "[W socket.cpp:601] [c10d] The client socket has failed to connect to [n1]:29500 "
            "(errno: 110 - Connection timed out).",
        ),
    ),
    # It tries again until the first rank listens, and then says nothing more.
    Rule(
        "RendezvousFailed",
        HINT,
        "The client socket has failed to connect to [",
        r"failed to connect to \[[^\]]{1,253}\]:\d{1,5} \(errno: (?!11[03] )\d",
        (
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to "
            "[localhost]:29500 (errno: 99 - Cannot assign requested address).",
        ),
    ),
    Rule(
        "RendezvousFailed",
        _WAITED,
        "DEADLINE_EXCEEDED: Barrier timed out",
        r"Barrier timed out\. .{0,40}PjRT_Client_Connect",
        (
            "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: "
            "PjRT_Client_Connect. Timed out task names: /job:jax_worker/replica:0/task:3",
        ),
    ),
    *said("CollectiveTimeout", _WAITED, "DEADLINE_EXCEEDED: Barrier timed out"),
    *said(
        "NoUsableNetwork",
        SPECIFIC,
        "Unable to find interface for:",
        "Unable to find address for:",
        "ifa != nullptr",
    ),
    *said(
        "HorovodShutdown",
        FOLLOWS,
        "Horovod has been shut down",
        "HorovodInternalError",
    ),
    *said(
        "PeerLost",
        HINT - 1,
        "Connection closed by peer",
        "[enforce fail at",
        "Broken pipe",
        "recvBytes, this=",
        "failed to recv, got 0 bytes",
        "TCPStore may have been torn down",
        "Socket Timeout",
        "DistBackendError",
        "Process group watchdog thread terminated",
        "ConnectionAbortedError",
    ),
    Rule(
        "PeerLost",
        HINT - 1,
        "Connection reset by peer",
        examples=("RuntimeError: [gloo/transport/tcp/pair.cc:589] Connection reset by peer",),
        unless=("btl_tcp", "UCX"),
    ),
    *said(
        "PeerLost",
        FOLLOWS,
        "the JAX distributed service detected fatal errors",
        "MPI_ERR_PROC_FAILED",
        "MPI_ERR_REVOKED",
    ),
    Rule(
        "RankTerminated",
        FOLLOWS,
        "got signal: 15",
        r"SignalException: Process \d{1,9} got signal: 15",
        ("SignalException: Process 12 got signal: 15",),
    ),
    Rule(
        "CollectiveTimeout",
        _WAITED,
        "failed to pass monitoredBarrier",
        rf"Ranks? {RANK}\b[\d, ]{{0,200}} failed to pass monitoredBarrier",
        ("RuntimeError: Rank 5 failed to pass monitoredBarrier in 30000 ms",),
        of_others=True,
    ),
    # --- launchers' summaries
    Rule(
        BAD_TERMINATION,
        EXITED + 1,
        "Child process with PID",
        rf"^\[rank: {RANK}\] Child process with PID \d{{1,9}} terminated with code "
        r"(?:-(?P<signal>\d{1,2})|(?P<code>\d{1,3}))\b",
        ("[rank: 3] Child process with PID 321 terminated with code -9. Forcefully terminating",),
    ),
    Rule(
        BAD_TERMINATION,
        EXITED + 1,
        "Root Cause (first observed failure)",
        "",
        ("Root Cause (first observed failure):",),
    ),
    Rule(
        BAD_TERMINATION,
        EXITED - 1,
        "exits with return code = ",
        r"exits with return code = (?:-(?P<signal>\d{1,2})|(?P<code>\d{1,3}))\b",
        ("[ERROR] [launch.py:321:sigkill_handler] ['python', 't.py'] exits with return code = -9",),
    ),
    Rule(
        BAD_TERMINATION,
        EXITED - 1,
        "failed (exitcode:",
        r"failed \(exitcode: (?:-(?P<signal>\d{1,2})|(?P<code>\d{1,3}))\) local_rank: \d",
        (
            "E1 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
            "local_rank: 1 (pid: 12) of binary: /usr/bin/python",
        ),
    ),
    Rule(
        BAD_TERMINATION,
        EXITED,
        "Process ",
        r"^Process (?P<rank>\d{1,7}) exit with status code (?P<code>\d{1,5})",
        ("Process 1 exit with status code 1.",),
    ),
    Rule(
        "RankExitedNonZero",
        HINT,
        "ChildFailedError",
        "",
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",),
    ),
)

DETAILS: Final = (
    Detail(
        "CollectiveTimeout",
        "[missing ranks: ",
        rf"\[missing ranks: {RANK}",
        "allreduce.weight_0 [missing ranks: 1, 3]",
    ),
    Detail(
        "CollectiveTimeout",
        ": [",
        rf"^(?:\[\d{{1,7}}\] )?{RANK}: \[[\w.]",
        "1: [grad.0, grad.1]",
    ),
    Detail(
        BAD_TERMINATION,
        "rank      :",
        rf"rank {{1,8}}: {RANK} \(local_rank",
        "  rank      : 1 (local_rank: 1)",
    ),
    Detail(BAD_TERMINATION, "host      :", rf"host {{1,8}}: {HOST}", "  host      : n1"),
    # torchrun names those that failed later first.
    Detail(
        "RankExitedNonZero",
        "rank      :",
        rf"rank {{1,8}}: {RANK} \(local_rank",
        "  rank      : 1 (local_rank: 1)",
    ),
    Detail("RankExitedNonZero", "host      :", rf"host {{1,8}}: {HOST}", "  host      : n1"),
    Detail(
        "RankExitedNonZero",
        "exitcode  :",
        r"exitcode {1,8}: (?P<code>\d{1,3})\b",
        "  exitcode  : 1 (pid: 123)",
    ),
    Detail(
        BAD_TERMINATION,
        "exitcode  :",
        r"exitcode {1,8}: (?:-(?P<signal>\d{1,2})|(?P<code>\d{1,3}))\b",
        "  exitcode  : -9 (pid: 123)",
    ),
)

BOILERPLATE: Final = ("ChildFailedError", "Root Cause (first observed failure)")
NOISE: Final[tuple[str, ...]] = ("Sending process", "Signals.SIGTERM death signal")
