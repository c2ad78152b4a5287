"""Open MPI 4 and 5, ORTE and PRRTE: mpirun's help texts, and what its daemons say."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    ABORTED,
    BAD_TERMINATION,
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
        "RunAsRoot",
        "mpirun refuses to run as root",
        "Open MPI wants to be told that root is meant.",
        "Set `runAsUser` of the pods to a user id other than 0, or OMPI_ALLOW_RUN_AS_ROOT=1 and "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the launcher's `env` (PRTE_ALLOW_RUN_AS_ROOT… too "
        "for Open MPI 5).",
    ),
    Cause(
        "MpiComponentMissing",
        "MPI lacks a component that was asked for",
        "An MCA parameter, or FI_PROVIDER or UCX_TLS, names a transport that this build has not.",
        "Remove the parameter (OMPI_MCA_btl, OMPI_MCA_pml, FI_PROVIDER, UCX_TLS) from `env`, or "
        "take an image that has the component.",
    ),
    Cause(
        "WorkingDirectoryMissing",
        "The working directory does not exist on a worker",
        "mpirun changes to the launcher's directory on every worker before it starts the program.",
        "Set the same `workingDir` and volume mounts on launcher and workers, or pass `--wdir /` "
        "to mpirun.",
    ),
    Cause(
        "WorkerLost",
        "A worker was lost while the job ran",
        "The connection to the MPI daemon on a worker broke: its pod was deleted, its node went, "
        "or the daemon was killed.",
        "Look at the worker with `odh mpijob describe NAME`; raise `runPolicy.backoffLimit` "
        "(`--retries`) so that the job starts again.",
    ),
    Cause(
        "MpiDaemonFailed",
        "The MPI daemon on a worker did not start",
        "mpirun reached the worker, and its daemon ended or could not connect back.",
        "Try `odh mpijob exec NAME --worker 0 -- prted --version` (orted for Open MPI 4), "
        "and check /tmp and the network policies of the worker.",
    ),
    Cause(
        "RankNetworkBlocked",
        "Ranks cannot connect to each other",
        "SSH works, but the ports that ranks listen on are blocked between workers, or the ranks "
        "chose addresses that others cannot reach.",
        "Allow all ports between the job's pods in NetworkPolicies (`sidecar.istio.io/inject: "
        '"false"` with Istio), or set OMPI_MCA_btl_tcp_if_include=eth0.',
    ),
    Cause(
        "NoUsableNetwork",
        "MPI finds no network that it may use",
        "The interface or device that MPI was told to use does not exist in the pods, or only "
        "the loopback device is allowed.",
        "Remove or correct btl_tcp_if_include, oob_tcp_if_include, UCX_NET_DEVICES, FI_PROVIDER or "
        "NCCL_SOCKET_IFNAME in `env`; pods usually have eth0.",
    ),
    Cause(
        "MpiAbort",
        "The program called MPI_Abort",
        "A rank decided to end all ranks; the error code is its own.",
        "Read what that rank printed before: `odh mpijob logs NAME --rank R`.",
    ),
    Cause(
        "MpiError",
        "An MPI call failed",
        "The program passed something to MPI that does not fit: a rank that does not exist, a "
        "buffer that is too small, a communicator that was freed.",
        "Correct the call that the message names; ranks must agree on counts, types and roots.",
    ),
    Cause(
        "MpiCalledOutOfOrder",
        "MPI was called before MPI_Init, twice initialised, or called after MPI_Finalize",
        "A library or another part of the program starts or ends MPI too, or a call stands before "
        "MPI_Init; mpi4py calls MPI_Init when it is imported and MPI_Finalize at exit.",
        "Call MPI_Init and MPI_Finalize once, ask MPI_Initialized before; with mpi4py set "
        "`mpi4py.rc.initialize = False` where another library starts MPI.",
        ("MpiError",),
    ),
    Cause(
        "RankExitedEarly",
        "A rank left without MPI_Finalize",
        "It called exit() or os._exit(), or returned early, while the others wait for it.",
        "Let every rank reach MPI_Finalize, or end all of them with MPI_Abort; in Python run "
        "`python -m mpi4py SCRIPT`.",
    ),
    Cause(
        "RankExitedNonZero",
        "A rank left with an exit code that is not 0",
        "The program ended by itself and reports a failure by its code.",
        "Read what that rank printed last: `odh mpijob logs NAME --rank R`.",
    ),
)

RULES: Final = (
    *said("RunAsRoot", STARTUP, "detected an attempt to run as root"),
    *said(
        "MpiComponentMissing",
        SPECIFIC,
        "requested component was not found",
        "No components were able to be opened",
        "BTL is no longer available in Open MPI",
    ),
    Rule(
        "MpiComponentMissing",
        SPECIFIC,
        "Could not find any usable",
        r"Could not find any usable (?:pml|mtl|btl|component)",
        ("Could not find any usable pml components",),
    ),
    *said(
        "MpiComponentMissing",
        SPECIFIC,
        "was unable to find any relevant network interfaces and aborted",
        "requires at least one plugin in order to operate",
        "but the library was not compiled with any support",
        "this environment lacks the necessary infrastructure",
        "No available launching agents were found",
        "was unable to find any mechanism to launch",
        "plugin in order to operate",
    ),
    *said(
        "NoUsableNetwork",
        SPECIFIC,
        "resulted in no networks being available",
        "The specified network is not parseable",
        "No sockets were able to be opened on the available",
        "but no non-loopback interfaces were found",
        "but no available interfaces were found",
        "Initialization of PSM library failed",
        "Initialization of PSM2 library failed",
        "was unable to open an endpoint",
        "PSM2 no hfi units are",
        "PSM2 can't open hfi unit",
        "PSM3 can't open nic unit",
        "assign_context command failed",
        "No OpenFabrics connection schemes reported",
    ),
    *said(
        "LockedMemoryLimit",
        SPECIFIC,
        "failed to initialize while trying to allocate some locked",
        "Failed to register memory region",
        "error registering openib memory",
    ),
    *said(
        "MpiLibraryMismatch",
        SPECIFIC,
        "detected a mismatch in versions between two",
        "unexpected version of PMIx was loaded",
        "version of PMIx was detected that is too old",
        "conflicting directives regarding the location of OPAL",
        "require a minimum level of PMIx",
        "but was given a different one",
    ),
    # Open MPI 2 to 4 also say it when ranks send one warning many times.
    Rule(
        "MpiLibraryMismatch",
        SPECIFIC,
        "Data unpack would read past end of buffer",
        unless=("show_help.c",),
        examples=(
            "[n1:7] [[3,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
            "grpcomm_direct.c at line 355",
        ),
    ),
    *said(
        "RankNetworkBlocked",
        FOLLOWS,
        "retry count between two MPI processes has been exceeded",
        "retry count on a per-peer connection between two MPI",
        "is unable to establish a communication connection to",
        "A critical communication path was lost to",
    ),
    *said(
        "WorkingDirectoryMissing",
        STARTUP,
        "change to the specified working directory",
        "unable to change to working directory",
        "unable to change wdir to",
    ),
    *said(
        "WorkerLost",
        LOST,
        "has lost communication with a remote daemon",
        "lost connection to a remote daemon",
        "daemon has unexpectedly failed after launch",
        despite_success=True,
    ),
    Rule(
        "MpiDaemonFailed",
        LOST,
        "unable to complete a TCP connection",
        rf"connection to another process: Local host:\s{{1,16}}{HOST}",
        (
            "A process or daemon was unable to complete a TCP connection to another process: "
            "Local host:    n1 Remote host:   l",
        ),
    ),
    *said("MpiDaemonFailed", HINT, "A daemon failed to report back after being spawned"),
    *said("MpiDaemonFailed", HINT - 1, "was unable to reliably start one or more daemons"),
    Rule(
        "MpiDaemonFailed",
        HINT,
        "died unexpectedly with status",
        r"daemon \(pid \d{1,9}\) died unexpectedly with status (?P<code>\d{1,5})",
        ("A daemon (pid 1234) died unexpectedly with status 127 while attempting",),
    ),
    Rule(
        "NoUsableNetwork",
        SPECIFIC,
        "unable to reach each other for",
        examples=("At least one pair of MPI processes are unable to reach each other for",),
        instead="RankNetworkBlocked",
    ),
    Rule(
        "NoUsableNetwork",
        SPECIFIC,
        "at least one MPI process is unreachable",
        examples=("MPI_INIT has failed because at least one MPI process is unreachable",),
        instead="RankNetworkBlocked",
    ),
    *said("RankNetworkBlocked", FOLLOWS, "Open MPI failed to TCP connect to a peer"),
    Rule(
        "RankNetworkBlocked",
        FOLLOWS,
        "mca_btl_tcp_endpoint",
        r"connect\(\) to \S{1,64} failed: (?:Connection (?:timed out|refused)|No route to host)",
        (
            "[n1][[8,1],0][btl_tcp_endpoint.c:626:mca_btl_tcp_endpoint_complete_connect] connect() "
            "to 10.0.0.3 failed: No route to host (113)",
        ),
    ),
    *said("RankNetworkBlocked", FOLLOWS, "received unexpected process identifier"),
    Rule(
        "RankNetworkBlocked",
        FOLLOWS,
        "unable to complete a TCP connection",
        r"^\s{0,8}Reason:",
        ("  Reason: unable to complete a TCP connection to the node",),
    ),
    *said(
        "NoUsableNetwork",
        STARTUP,
        "No network interfaces were found for out-of-band",
        "None of the TCP networks specified to be included",
    ),
    Rule(
        "NoUsableNetwork",
        STARTUP - 1,
        "invalid value was given for",
        r"given for (?:btl_tcp|oob_tcp|prte_if|opal_if|ptl_tcp|if)_?(?:if_)?(?:in|ex)clude",
        ("WARNING: An invalid value was given for btl_tcp_if_include.  This",),
    ),
    *said("NoUsableNetwork", STARTUP - 1, "unable to find interface"),
    Rule(
        "MpiAbort",
        ABORTED,
        "MPI_ABORT was invoked on rank",
        rf"MPI_ABORT was invoked on rank {RANK} in communicator MPI_COMM_WORLD",
        ("MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD",),
        despite_success=True,
    ),
    *said("MpiAbort", ABORTED - 1, "MPI_ABORT was invoked on rank", despite_success=True),
    Rule(
        "MpiAbort",
        HINT - 4,
        "has exited due to process rank",
        rf"exited due to process rank {RANK} with PID \d{{1,9}} on node {HOST} calling",
        ("prterun has exited due to process rank 2 with PID 5 on node n2 calling",),
    ),
    Rule(
        "MpiError",
        MPI_ERROR,
        "*** MPI_ERR_",
        rf"^\[{HOST}:\d{{1,9}}\] \*\*\* MPI_ERR_(?!PROC_FAILED|REVOKED)",
        ("[n1:00000] *** MPI_ERR_RANK: invalid rank",),
        despite_success=True,
    ),
    Rule(
        "MpiError",
        MPI_ERROR - 1,
        "*** MPI_ERR_",
        r"\*\*\* MPI_ERR_(?!PROC_FAILED|REVOKED)[A-Z_]{2,30}:",
        ("*** MPI_ERR_TRUNCATE: message truncated",),
        despite_success=True,
    ),
    # Any other call that failed: of which kind, or whose process failed, is said below.
    Rule(
        "MpiError",
        LOST - 1,
        "An error occurred in MPI",
        rf"^(?:\[{HOST}:\d{{1,9}}\] )?\*\*\* An error occurred in MPI_(?!Init|Finalize)\w",
        ("[n1:1] *** An error occurred in MPI_Comm_spawn",),
        despite_success=True,
    ),
    *said(
        "MpiCalledOutOfOrder",
        MPI_ERROR + 1,
        "was called before MPI_INIT was invoked",
        "was called after MPI_FINALIZE was invoked",
        "MPI_INIT or MPI_INIT_THREAD) more than once",
        "MPI_INIT or MPI_INIT_THREAD more than once",
        "MPI_FINALIZE was invoked before MPI was initialized",
        "MPI_FINALIZE was invoked multiple times",
        "before initializing or after finalizing",
        "Attempting to use an MPI routine before initializing",
        "Attempting to use an MPI routine after finalizing",
        "function was called before MPI_INIT",
        despite_success=True,
    ),
    Rule(
        "RankExitedEarly",
        EXITED,
        "exiting improperly",
        rf"^node {HOST} exiting improperly",
        ("node n1 exiting improperly. There are three reasons this could occur:",),
        despite_success=True,
    ),
    Rule(
        "RankExitedEarly",
        EXITED,
        "exited due to process rank",
        rf"exited due to process rank {RANK} with PID \d{{1,9}} on$",
        ("mpirun has exited due to process rank 1 with PID 7349 on",),
        despite_success=True,
    ),
    Rule(
        "RankExitedEarly",
        EXITED,
        "exiting improperly",
        rf"process rank {RANK} with PID \d{{1,9}} on\s+node {HOST} exiting improperly",
        ("due to process rank 1 with PID 7349 on node n1 exiting improperly. There",),
        despite_success=True,
    ),
    *said(
        "RankExitedNonZero",
        EXITED,
        "detected that one or more processes exited with non-zero status",
        despite_success=True,
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED,
        "exited on signal",
        rf"process rank {RANK} with PID \d{{1,9}} on node {HOST} exited on signal {SIGNAL}",
        ("mpirun noticed that process rank 1 with PID 7 on node n1 exited on signal 9 (Killed).",),
        despite_success=True,
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED,
        "exited on",
        rf"process rank {RANK} with PID \d{{1,9}} on node {HOST} exited on$",
        ("prterun noticed that process rank 1 with PID 1622 on node n1 exited on",),
        despite_success=True,
    ),
    Rule(
        BAD_TERMINATION,
        SIGNALLED,
        "] Signal: ",
        rf"^\[{HOST}:\d{{1,9}}\] Signal: [A-Za-z ]{{1,40}} \({SIGNAL}\)",
        ("[n1:08985] Signal: Segmentation fault (11)",),
        despite_success=True,
    ),
    # Without a signal or a code, a rank may as well have left by itself.
    Rule(
        "RankKilled",
        HINT,
        "peer process has unexpectedly disconnected",
        examples=("An MPI communication peer process has unexpectedly disconnected.  This",),
        despite_success=True,
        instead="RankExitedEarly",
    ),
    Rule(
        "RankKilled",
        HINT - 1,
        "An error occurred in Socket closed",
        examples=("[n1:00000] *** An error occurred in Socket closed",),
        despite_success=True,
        instead="RankExitedEarly",
    ),
    Rule(
        "RankKilled",
        HINT - 3,
        "mca_btl_tcp_frag_recv",
        r"readv failed: Connection (?:reset by peer|timed out)",
        (
            "[n1][[5,1],0][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] readv failed: Connection "
            "reset by peer (104)",
        ),
    ),
)

DETAILS: Final = (
    Detail(BAD_TERMINATION, "signal ", rf"^signal {SIGNAL} \(", "signal 4 (Illegal instruction)."),
    Detail(
        "WorkerLost",
        "Remote daemon:",
        rf"Remote daemon: .{{1,300}} on node {HOST}",
        "  Remote daemon: [[33294,0],2] on node n1",
    ),
    Detail(
        "MpiDaemonFailed", "Remote host:", rf"Remote host:\s{{1,8}}{HOST}", "  Remote host:   n1"
    ),
    Detail("MpiDaemonFailed", "Node name:", rf"Node name:\s{{1,8}}{HOST}", "  Node name:  n1"),
    Detail("RankKilled", "Peer host:", rf"Peer host:\s{{1,8}}{HOST}", "  Peer host:  n1"),
    Detail(
        "MpiError",
        "reported by process",
        rf"^(?:\[{HOST}:\d{{1,9}}\] )?\*\*\* reported by process \[\d{{1,12}},{RANK}\]",
        "[n1:1] *** reported by process [9,1]",
    ),
    Detail(
        "MpiAbort", "Proc: ", rf"Proc: \[\[\d{{1,9}},\d{{1,9}}\],{RANK}\]", "  Proc: [[35,1],1]"
    ),
    Detail("MpiAbort", "rrorcode", r"rrorcode:? (?P<code>\d{1,10})", "with errorcode 42."),
    Detail(
        "RankExitedNonZero",
        "Process name:",
        rf"Process name: \[.{{1,300}},{RANK}\]",
        "  Process name: [[62753,1],1]",
    ),
    Detail(
        "RankExitedNonZero",
        "Exit code:",
        r"Exit code:\s{1,8}(?P<code>\d{1,5})",
        "  Exit code:    3",
    ),
    *(
        Detail(cause, " host:", rf"^\s{{1,8}}Local host:\s{{1,16}}{HOST}$", "  Local host:    n1")
        for cause in (
            "LockedMemoryLimit",
            "MpiComponentMissing",
            "NoUsableNetwork",
            "RankNetworkBlocked",
            "SharedMemoryFull",
        )
    ),
    Detail(
        "MpiComponentMissing", "Host: ", rf"^\s{{0,8}}Host:\s{{1,16}}{HOST}$", "  Host:      n1"
    ),
    Detail(
        "NoUsableNetwork",
        "is on host: ",
        rf"^\s{{1,8}}Process 1 \(\S{{1,80}}\) is on host: {HOST}$",
        "  Process 1 ([[12345,1],1]) is on host: n1",
    ),
    Detail(
        "RankExitedEarly",
        "exiting improperly",
        rf"node {HOST} exiting improperly",
        "node n1 exiting improperly. There are three reasons this could occur:",
    ),
)

BOILERPLATE: Final = (
    "was unable to reliably start one or more daemons",
    "A daemon failed to report back after being spawned",
    "peer process has unexpectedly disconnected",
)

NOISE: Final = (
    "does not know how to route a message to the specified daemon",
    "Primary job  terminated normally",
    "Primary job terminated normally",
    "a non-zero exit code. Per user-direction",
    "failed in parent with errno",
    "MPI_ERRORS_ARE_FATAL",
    "PMIX ERROR: UNREACHABLE",
    "PMIX ERROR: PMIX_ERR_NOT_FOUND",
    "help message help-",
    "base_help_aggregate",
    "Deprecated command line option",
    "mca_base_component_repository_open",
    "component_repository_open: unable to open",
)
