"""Hydra and the libraries below it: MPICH, Intel MPI, UCX, libfabric."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    ABORTED,
    BAD_TERMINATION,
    EXCEPTION,
    EXITED,
    FOLLOWS,
    HINT,
    HOST,
    LOST,
    MPI_ERROR,
    RANK,
    SIGNAL,
    SIGNALLED,
    SPECIFIC,
    STARTUP,
    Cause,
    Detail,
    Rule,
    said,
)

CAUSES: Final = (
    Cause(
        "MpiLibraryMismatch",
        "The ranks use another MPI than the one that started them",
        "mpirun of one MPI starts programs that were built with another, so that ranks cannot "
        "find each other, or each believes to be alone.",
        "Set `mpiImplementation` (`--mpi`) to the MPI of the image, and rebuild mpi4py or the "
        "program with the `mpicc` beside that mpirun.",
    ),
    Cause(
        "LockedMemoryLimit",
        "Too little memory may be locked for the network adapter",
        "RDMA registers memory with the adapter, and the container's limit (ulimit -l) is small.",
        "Add the capability IPC_LOCK to the workers' `securityContext`, or turn RDMA off with "
        "UCX_TLS=tcp,self,sm.",
    ),
)

RULES: Final = (
    # --- how ranks ended
    Rule(
        BAD_TERMINATION,
        EXITED,
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "",
        ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",),
        despite_success=True,
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED,
        "Caught signal",
        rf"^\[{HOST}:\d{{1,9}} {{0,4}}(?::\d{{1,4}} {{0,4}}:\d{{1,9}})?\] Caught signal "
        rf"{SIGNAL} \(",
        (
            "[n1:26628:0:26628] Caught signal 11 (Segmentation fault: address not mapped)",
            "[n1:412  :0:4301] Caught signal 11 (Segmentation fault: address not mapped to object)",
        ),
        despite_success=True,
    ),
    Rule(
        "MpiAbort",
        ABORTED,
        "application called MPI_Abort(",
        rf"(?:on node {RANK} \(rank \d{{1,7}} in comm \S{{1,12}}\): |Fatal error|)application "
        r"called MPI_Abort\((?:[^,]{1,80}, (?P<code>-?\d{1,10}))?",
        (
            "Abort(42) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, "
            "42) - process 1",
        ),
        despite_success=True,
    ),
    Rule(
        "MpiAbort",
        ABORTED,
        "application called MPI_Abort(MPI_COMM_WORLD, ",
        r"^application called MPI_Abort\(MPI_COMM_WORLD, (?P<code>-?\d{1,10})\) - process "
        rf"{RANK}$",
        ("application called MPI_Abort(MPI_COMM_WORLD, 1) - process 2",),
        despite_success=True,
    ),
    # Codes that MPICH makes itself, of an error in one of its calls, are large.
    Rule(
        "MpiError",
        ABORTED,
        "has ended all ranks by MPI_Abort(",
        rf"rank {RANK} on {HOST} has ended all ranks by MPI_Abort\(\d{{7,10}}\)",
        ("rank 1 on n1 has ended all ranks by MPI_Abort(67802638)",),
    ),
    Rule(
        "RankExitedEarly",
        SIGNALLED + 3,
        "but without MPI_Finalize",
        rf"rank {RANK} on {HOST} ended with exit code 0 but without MPI_Finalize",
        ("rank 1 on n1 ended with exit code 0 but without MPI_Finalize",),
    ),
    Rule(
        "MpiAbort",
        ABORTED - 1,
        "has ended all ranks by MPI_Abort(",
        rf"rank {RANK} on {HOST} has ended all ranks by MPI_Abort\((?P<code>\d{{1,10}})",
        (
            "Launcher a-launcher ended with exit code 3: rank 1 on n1 has ended all ranks by "
            "MPI_Abort(3)",
        ),
    ),
    Rule(
        "MpiError",
        MPI_ERROR,
        "Fatal error in ",
        rf"Abort\(\d{{1,10}}\) on node {RANK}(?: \(rank \d{{1,7}} in comm \S{{1,12}}\))?: Fatal "
        r"error in (?!(?:P?MPI_|internal_)(?:Init|Finalize))",
        (
            "Abort(269109766) on node 1 (rank 1 in comm 0): Fatal error in internal_Send: Invalid "
            "rank, error stack:",
            "Abort(873020421) on node 1: Fatal error in internal_Barrier: Invalid communicator",
        ),
        despite_success=True,
    ),
    Rule(
        "MpiError",
        MPI_ERROR - 1,
        "Fatal error in ",
        rf"(?:^MPICH ERROR \[Rank {RANK}\] (?:\[[^\]]{{1,80}}\] ){{2}}\[{HOST}\] - .{{1,80}})?"
        r"Fatal error in (?:P?MPI_|internal_|PMPI_)(?!Init|Finalize)\w{1,60}: ",
        (
            "Fatal error in PMPI_Recv: Message truncated, error stack:",
            "MPICH ERROR [Rank 7] [job id 4.0] [Thu Aug 14 08:27:11 2025] [n1] - Abort(26) (rank 7 "
            "in comm 0): Fatal error in PMPI_Allreduce: Other MPI error, error stack:",
        ),
        despite_success=True,
    ),
    Rule(
        "MpiError",
        EXCEPTION,
        "mpi4py.MPI.Exception",
        r"^mpi4py\.MPI\.Exception: (?!MPI_ERR_PROC_FAILED|MPI_ERR_REVOKED)",
        ("mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated",),
    ),
    Rule(
        "MpiInitFailed",
        MPI_ERROR - 2,
        "Fatal error in ",
        r"Fatal error in (?:P?MPI_|internal_|PMPI_)Init\w{0,60}: ",
        ("Fatal error in PMPI_Init: Other MPI error, error stack:",),
        despite_success=True,
    ),
    Rule(
        "MpiInitFailed",
        MPI_ERROR - 2,
        "Fatal error in ",
        rf"Abort\(\d{{1,10}}\) on node {RANK}(?: \([^)]{{1,40}}\))?: Fatal error in "
        r"(?:P?MPI_|internal_|PMPI_)Init",
        ("Abort(1091215) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error",),
        despite_success=True,
    ),
    *said("MpiInitFailed", MPI_ERROR - 3, "MPI_INIT failed for some reason"),
    Rule(
        "MpiInitFailed",
        MPI_ERROR - 6,
        "Local abort before MPI_INIT completed",
        rf"^\[{HOST}:\d{{1,9}}\] Local abort before MPI_INIT completed",
        ("[n1:24629] Local abort before MPI_INIT completed completed successfully, but am not",),
    ),
    Rule(
        "MpiInitFailed",
        MPI_ERROR - 3,
        "An error occurred in MPI",
        rf"^(?:\[{HOST}:\d{{1,9}}\] )?\*\*\* An error occurred in MPI_Init",
        ("[n1:01288] *** An error occurred in MPI_Init_thread",),
    ),
    # --- workers that go away
    Rule(
        "WorkerLost",
        LOST,
        "Downstream from host",
        rf"Error: Downstream from host {HOST} exited abnormally",
        ("[mpiexec@l] Error: Downstream from host n1 exited abnormally",),
        despite_success=True,
    ),
    Rule(
        "WorkerLost",
        FOLLOWS,
        "downstream from host",
        rf"downstream from host {HOST} exited with status [1-9]",
        ("[mpiexec@l] wait (i_mpiexec.c:554): downstream from host n1 exited with status 255",),
        despite_success=True,
    ),
    Rule(
        "WorkerLost",
        FOLLOWS,
        "assert (!closed) failed",
        r"^\[mpiexec@[^\]]{1,253}\] control_cb ",
        ("[mpiexec@l] control_cb (pm/pmiserv/pmiserv_cb.c:206): assert (!closed) failed",),
        despite_success=True,
    ),
    Rule(
        "SshFailed",
        STARTUP - 2,
        "Unable to run bstrap_proxy on",
        rf"Unable to run bstrap_proxy on {HOST} \(pid \d{{1,9}}, exit code 65280\)",
        ("[mpiexec@l] Error: Unable to run bstrap_proxy on n1 (pid 3, exit code 65280)",),
    ),
    Rule(
        "MpiMissingOnWorker",
        STARTUP - 2,
        "Unable to run bstrap_proxy on",
        rf"Unable to run bstrap_proxy on {HOST} \(pid \d{{1,9}}, exit code 32(?:512|256)\)",
        ("[mpiexec@l] Error: Unable to run bstrap_proxy on n1 (pid 3, exit code 32512)",),
    ),
    # A daemon that cannot connect back to mpirun.
    Rule(
        "MpiDaemonFailed",
        STARTUP - 1,
        "unable to connect from",
        rf'^\[[\w:]{{1,30}}@{HOST}\] .{{1,200}}unable to connect from "',
        (
            '[proxy:0:0@n1] HYDU_sock_connect (lib/utils/sock.c:209): unable to connect from "n1" '
            'to "l" (No route to host)',
        ),
    ),
    Rule(
        "MpiDaemonFailed",
        STARTUP - 2,
        "unable to connect to server",
        rf"^\[[\w:]{{1,30}}@{HOST}\] .{{1,200}}unable to connect to server \S{{1,253}} at port",
        (
            "[proxy:0:0@n1] main (proxy/pmip.c:105): unable to connect to server l at port 43211 "
            "(check for firewalls!)",
        ),
    ),
    Rule(
        "NameResolution",
        STARTUP,
        "unable to get host address for",
        rf"unable to get host address for {HOST}",
        (
            "[proxy:0:0@n1] HYDU_sock_connect (lib/utils/sock.c:140): unable to get host address "
            "for l (1)",
        ),
    ),
    Rule(
        "MpiDaemonFailed",
        HINT,
        "Unable to run bstrap_proxy on",
        rf"Unable to run bstrap_proxy on {HOST} ",
        ("[mpiexec@l] Error: Unable to run bstrap_proxy on n1 (pid 3, exit code 256)",),
    ),
    # --- libraries that do not belong together
    *said(
        "MpiLibraryMismatch",
        STARTUP,
        "unsupported PMI version",
        "PMI version mismatch",
        "suspicious MPI execution environment",
        "mpirun from a different MPI implementation",
        "by a different MPI implementation",
        "OMPI was not built with SLURM's PMI support",
        "library was not built with PMI support",
        "Incompatible version of MPI library",
        despite_success=True,
    ),
    Rule(
        "MpiLibraryMismatch",
        SPECIFIC - 2,
        "OPAL ERROR: ",
        r"OPAL ERROR: (?:Unreachable|Error|Not initialized) in file (?:ext|pmix)",
        ("[n1:7] OPAL ERROR: Unreachable in file ext3x_client.c at line 112",),
    ),
    Rule(
        "MpiLibraryMismatch",
        STARTUP,
        "mpi4py was built with",
        r"Your environment has \w{1,60}=\S{0,40} set, but mpi4py was built with",
        ("Your environment has PMI_SIZE=3 set, but mpi4py was built with Open MPI",),
        despite_success=True,
    ),
    Rule(
        "MpiLibraryMismatch",
        SPECIFIC - 1,
        "ERROR_LOG",
        r"\[\[INVALID\],INVALID\] (?:ORTE|PRTE)_ERROR_LOG",
        ("[n1:42] [[INVALID],INVALID] ORTE_ERROR_LOG: Unreachable in file x.c at line 147",),
    ),
    *said(
        "MpiLibraryMismatch",
        SPECIFIC - 2,
        "orte_init failed",
        "orte_ess_init failed",
        "opal_init failed",
        "PMI2_Init failed",
        "PMI_Init returned",
        "PMI1_Init failed",
        "PMIX_Init failed",
        "ompi_rte_init failed",
        "PMIx_Init failed",
        "pmix_init failed",
    ),
    # --- networks
    # Intel MPI goes on with another one where it can.
    Rule(
        "MpiComponentMissing",
        MPI_ERROR - 1,
        "MPI startup(): ",
        r"MPI startup\(\): .{0,200}?fabric (?:is unknown|is not available|cannot be used)|"
        r"MPI startup\(\): I_MPI_(?:FABRICS|OFI_PROVIDER)\b.{0,80} is invalid",
        (
            "MPI startup(): tcp fabric is unknown or has been removed from the product",
            "MPI startup(): I_MPI_FABRICS=bogus is invalid",
        ),
    ),
    Rule(
        "RankNetworkBlocked",
        FOLLOWS,
        "UCX  ERROR",
        r"(?:connect\(|connection to ).{1,200}: (?:Connection (?:timed out|refused)|No route)",
        ("sock.c:325 UCX  ERROR connect(fd=21, dest_addr=10.0.0.3:4) failed: No route to host",),
    ),
    *said(
        "NoUsableNetwork",
        SPECIFIC,
        "no usable transports/devices",
        "provider not found: check",
        "fabric is not available and fallback fabric is not enabled",
        "OFI addrinfo() failed",
        "OFI call getinfo failed",
        "OFI provider not found",
        "no active messages transport to",
        "no remote registered memory access transport to",
        "no auxiliary transport to",
        "no tag-matching transport to",
        "Bootstrap : no socket interface found",
        "No IB devices found",
        "No provider found for requested",
    ),
    Rule(
        "NoUsableNetwork",
        SPECIFIC,
        "Destination is unreachable",
        examples=(
            "[n1:9] pml_ucx.c:383  Error: ucp_ep_create(proc=5) failed: Destination is unreachable",
        ),
        instead="RankNetworkBlocked",
    ),
    Rule(
        "NoUsableNetwork",
        MPI_ERROR + 1,
        "Failed to create UCP worker",
        examples=("[n1:62000] pml_ucx.c:291  Error: Failed to create UCP worker",),
    ),
    Rule(
        "NoUsableNetwork",
        SPECIFIC,
        "network device '",
        r"network device '[^']{1,80}' is not available",
        ("ucp_context.c:690 UCX  WARN  network device 'eth9' is not available, please use one of",),
    ),
    Rule(
        "NoUsableNetwork",
        SPECIFIC,
        "No data available",
        r"(?:fi_getinfo|OFI|ofi_init|getinfo).{0,200}No data available",
        ("open_fabric(2603): OFI fi_getinfo() failed (ofi_init.c:2603: No data available)",),
    ),
    *said(
        "LockedMemoryLimit",
        SPECIFIC,
        "allocate some locked memory",
        "Please set max locked memory",
        "memlock limit too low",
        "ulimit -l) to 'unlimited'",
        "register memory: Cannot allocate memory",
    ),
    Rule(
        "LockedMemoryLimit",
        SPECIFIC + 1,
        "Cannot allocate memory",
        r"ibv_(?:reg_mr|create_qp|create_cq|alloc_pd)\w{0,20}\(.{1,300}failed: Cannot allocate",
        ("ib_md.c:379 UCX  ERROR ibv_reg_mr(address=0x7f) failed: Cannot allocate memory.",),
    ),
    Rule(
        "RankKilled",
        HINT - 2,
        "UCX  ERROR",
        r"(?:Connection reset by (?:remote )?peer|Endpoint timeout|Broken pipe)",
        ("sock.c:325 UCX  ERROR recv(fd=21) failed: Connection reset by peer",),
    ),
    Rule(
        "RankNetworkBlocked",
        FOLLOWS,
        "Communication error with rank",
        r"Communication error with rank \d{1,7}: (?:Connection (?:refused|timed out)|No route)",
        ("MPID_nem_tcp_connpoll(1845): Communication error with rank 1: Connection refused",),
    ),
    *said("RankKilled", HINT - 2, "Communication error with rank", "MPIDI_OFI_handle_cq_error"),
    Rule(
        "RankKilled",
        HINT - 1,
        "Transport retry count exceeded",
        examples=("[n1:26:0:26] ib_mlx5_log.c:177 Transport retry count exceeded on mlx5_0:1",),
        instead="RankNetworkBlocked",
    ),
)

DETAILS: Final = (
    Detail(
        BAD_TERMINATION,
        "RUNNING AT",
        rf"(?:RANK {RANK} )?PID \d{{1,9}} RUNNING AT {HOST}",
        "=   RANK 1 PID 7577 RUNNING AT n1",
    ),
    Detail(
        BAD_TERMINATION,
        "KILLED BY SIGNAL:",
        rf"KILLED BY SIGNAL: {SIGNAL}",
        "=   KILLED BY SIGNAL: 6 (Aborted)",
    ),
    Detail(
        BAD_TERMINATION,
        "EXIT STRING:",
        rf"EXIT STRING: [A-Za-z ,-]{{1,60}} \(signal {SIGNAL}\)",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Broken pipe (signal 13)",
    ),
    Detail(BAD_TERMINATION, "EXIT CODE:", r"EXIT CODE: (?P<code>\d{1,5})", "=   EXIT CODE: 9"),
)

BOILERPLATE: Final = (
    "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "assert (!closed) failed",
)

# The exit string is of whichever rank ended last: it counts where the code is the same.
NOISE: Final = (
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING",
    "CLEANING UP REMAINING PROCESSES",
    "YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
    "callback returned error status",
    "error waiting for event",
    "error waiting for completion",
    "demux engine error",
    "one of the processes terminated badly",
    "Launch proxy failed",
    "error parsing hostfile",
    "error parsing parameters",
    "checking environment variables",
    "check exit codes error",
    "poll for event error",
    "Trying to close other downstreams",
    "argument matching returned error",
)
