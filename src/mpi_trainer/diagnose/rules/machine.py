"""What the machine has too little of, or refuses: memory, disks, files, processes, ports."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    ABORTED,
    EXCEPTION,
    HINT,
    HOST,
    KILLED,
    PROOF,
    SPECIFIC,
    STARTUP,
    Cause,
    Detail,
    Rule,
    said,
)

_EXCEPTION = ("ProgramException",)

CAUSES: Final = (
    Cause(
        "OutOfMemory",
        "A rank used more memory than its pod may",
        "The kernel killed it at the container's memory limit, or an allocation failed.",
        "Raise `resources.limits.memory` of the workers (`--memory`), or use fewer ranks a worker, "
        "smaller batches or fewer data loader processes.",
    ),
    Cause(
        "SharedMemoryFull",
        "/dev/shm is too small",
        "Containers get 64 MiB of shared memory, and MPI, NCCL and data loaders use more.",
        "Mount an `emptyDir` with `medium: Memory` at /dev/shm of the workers.",
        ("RankBusError", "DiskFull", "OutOfMemory"),
    ),
    Cause(
        "DiskFull",
        "A disk is full",
        "The volume, or the container's own file system, has no room left.",
        "Enlarge the volume, write checkpoints to a PersistentVolumeClaim, or delete old ones.",
    ),
    Cause(
        "DiskQuotaExceeded",
        "A quota of the file system is used up",
        "The storage allows this user or project no more bytes or files.",
        "Delete files there, or have the quota of the volume raised.",
        ("DiskFull",),
    ),
    Cause(
        "ReadOnlyFileSystem",
        "A file system may not be written",
        "The volume is mounted read-only, or `readOnlyRootFilesystem` is set.",
        "Write to a volume that is mounted without `readOnly`, or mount an `emptyDir` at the path.",
        _EXCEPTION,
    ),
    Cause(
        "FilePermissionDenied",
        "A file may not be read or written",
        "The pod's user id does not own it; OpenShift gives every namespace other ids.",
        "Set `fsGroup` in the pods' `securityContext`, or give the files to group 0 (`chgrp 0`, "
        "`chmod g=u`) when the image is built.",
        _EXCEPTION,
    ),
    Cause(
        "FileMissing",
        "A file or directory does not exist",
        "The path is misspelt, or the volume with it is not mounted in the workers.",
        "Correct the path, and give launcher and workers the same `volumeMounts`.",
        _EXCEPTION,
    ),
    Cause(
        "StorageFailed",
        "The storage does not work",
        "Reads or writes fail on the medium, or a network file system lost its server.",
        "Check the volume and its node (`kubectl describe pvc NAME`), and start the job again.",
        _EXCEPTION,
    ),
    Cause(
        "TemporaryDirectoryFull",
        "MPI cannot make its directory, since /tmp is full",
        "mpirun and its daemons keep sockets and files below TMPDIR.",
        "Mount an `emptyDir` at /tmp of launcher and workers, or set TMPDIR in `env` to a "
        "directory with room.",
        ("DiskFull",),
    ),
    Cause(
        "TemporaryDirectoryConflict",
        "Two MPI processes use the same directory below /tmp",
        "Pods share /tmp, or an earlier job left files of another user there.",
        "Mount an `emptyDir` of its own at /tmp of each pod, or set TMPDIR in `env` to a directory "
        "of the pod.",
        ("TemporaryDirectoryFull",),
    ),
    Cause(
        "TemporaryDirectoryUnusable",
        "MPI cannot make its directory for temporary files",
        "TMPDIR names a directory that does not exist or may not be written.",
        "Remove TMPDIR from `env`, or mount an `emptyDir` at the directory that it names.",
        ("TemporaryDirectoryFull", "TemporaryDirectoryConflict"),
    ),
    Cause(
        "OpenFilesLimit",
        "Too many files are open",
        "The process has reached its limit of open files and sockets (ulimit -n).",
        "Close files that are no longer used, use fewer data loader processes, or raise the limit "
        "with `ulimit -n` before the program.",
        _EXCEPTION,
    ),
    Cause(
        "ProcessLimit",
        "No more processes or threads can be started",
        "The pod's limit of processes is reached; numerical libraries start a thread for each "
        "core of the node.",
        "Set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS in `env` to the CPUs of a rank, or have "
        "podPidsLimit of the nodes raised.",
        _EXCEPTION,
    ),
    Cause(
        "PortRangeUsedUp",
        "No port is left in the range that MPI may use",
        "The range is empty, below 1024 without the right for it, or smaller than the number of "
        "ranks and daemons on a host.",
        "Widen or remove the range: btl_tcp_port_range_v4, oob_tcp_dynamic_ipv4_ports, "
        "MPIEXEC_PORT_RANGE, MPIR_CVAR_CH3_PORT_RANGE or I_MPI_PORT_RANGE in `env`.",
        ("AddressInUse",),
    ),
    Cause(
        "AddressInUse",
        "A port is in use already",
        "Another process listens there: a rank of an earlier job, or two ranks with one port.",
        "Choose another port (MASTER_PORT in `env`), and turn `hostNetwork` off so that each pod "
        "has its own.",
        _EXCEPTION,
    ),
)

RULES: Final = (
    # --- memory
    *said(
        "OutOfMemory",
        PROOF,
        "Memory cgroup out of memory",
        "oom-kill:constraint",
        "OOMKilled",
        "oom_reaper: reaped process",
        "Out of memory: Killed process",
    ),
    Rule(
        "OutOfMemory",
        PROOF,
        "oom_kill event",
        r"[Dd]etected \d{1,9} oom[_-]kill event",
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.",),
    ),
    *said("OutOfMemory", PROOF, "oom-kill event", "cgroup out-of-memory handler"),
    *said("OutOfMemory", SPECIFIC, "fatal error: runtime: out of memory"),
    Rule(
        "OutOfMemory",
        SPECIFIC,
        "MemoryError",
        r"^(?:[\w.]{1,120}\.)?MemoryError\b",
        (
            "MemoryError",
            "MemoryError: Unable to allocate 29.8 GiB for an array",
        ),
    ),
    *said("OutOfMemory", SPECIFIC, "ArrayMemoryError"),
    Rule(
        "OutOfMemory",
        SPECIFIC,
        "Error allocating",
        r"^Error allocating \d{1,20} bytes",
        ("Error allocating 80000000 bytes",),
    ),
    Rule(
        "OutOfMemory",
        SPECIFIC + 1,
        "failed to map segment from shared object",
        unless=("Operation not permitted", "MPI library"),
        examples=(
            "./train: error while loading shared libraries: libc.so.6: failed to map segment from "
            "shared object",
        ),
    ),
    *said(
        "OutOfMemory",
        SPECIFIC,
        "std::bad_alloc",
        "not enough memory: you tried to allocate",
        "can't allocate memory: you tried to allocate",
        "insufficient virtual memory",
        "java.lang.OutOfMemoryError",
        "Allocation would exceed memory limit",
        "Cannot allocate memory",
        "cannot allocate memory",
        "virtual memory exhausted",
        "Out of memory allocating",
        "cannot map zero-fill pages",
        "insufficient memory to allocate",
        "memory allocation of ",
    ),
    Rule(
        "OutOfMemory",
        SPECIFIC,
        "OutOfMemoryError",
        unless=("CUDA", "GPU", "HIP", "torch.cuda", "torch.OutOfMemoryError"),
        examples=("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low",),
    ),
    Rule(
        "RankKilled",
        EXCEPTION + 1,
        "exited unexpectedly",
        r"DataLoader worker \(pid\(?s?\)? [\d, ]{1,80}\) exited unexpectedly",
        ("RuntimeError: DataLoader worker (pid(s) 1234) exited unexpectedly",),
        instead="OutOfMemory",
    ),
    *said("RankKilled", EXCEPTION + 1, "A process in the process pool was terminated abruptly"),
    Rule(
        "RankKilled",
        KILLED + 4,
        "is killed by signal: Killed",
        examples=("RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed.",),
    ),
    # --- shared memory
    *said(
        "SharedMemoryFull",
        SPECIFIC + 2,
        "insufficient shared memory (shm)",
        "dataloader's workers are out of shared memory",
        "is killed by signal: Bus error",
        "Error while creating shared memory segment",
        "Not enough memory to write total of",
        "not enough space for /dev/shm",
        "unable to mmap shared memory",
        "unable to resize file </torch_",
        "Failed to create shared memory segment",
        "Shared memory error",
        "unable to allocate shared memory",
        "failed to allocate receive FIFO",
        "Failed to allocate memory pool (name=mm_",
        "It appears as if there is not enough space for",
        "Please check that /dev/shm",
        "Function Can't open SHM2 failed",
        "shared memory BTL coordinating structure",
    ),
    Rule(
        "SharedMemoryFull",
        SPECIFIC + 2,
        "unable to open shared memory object",
        unless=("Too many open files",),
        examples=(
            "RuntimeError: unable to open shared memory object </torch_30_18> in read-write mode: "
            "No such file or directory (2)",
        ),
    ),
    Rule(
        "SharedMemoryFull",
        SPECIFIC + 2,
        "shared-memory backing file",
        r"not enough space for .{1,300}shared-memory backing file",
        ("there is not enough space for /tmp/x (the shared-memory backing file)",),
    ),
    Rule(
        "SharedMemoryFull",
        SPECIFIC + 2,
        "No space left on device",
        r"/dev/shm|shm_open|shmget|shared memory|ftruncate",
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_8a1f'",),
    ),
    # --- MPI's own directory
    Rule(
        "TemporaryDirectoryFull",
        STARTUP,
        "No space left on device",
        r"(?:ompi\.|openmpi-sessions|prte\.|pmix-|session dir|/tmp/ompi|jobfam).{0,300}"
        r"No space left on device",
        ("mkdir /tmp/ompi.n1.1000/pid.7: No space left on device",),
    ),
    # Below `mkdir was unable to create the desired directory`, which says not why.
    Rule(
        "TemporaryDirectoryFull",
        STARTUP,
        "No space left on device",
        r"^\s{1,8}Error:\s{1,8}No space left on device",
        ("  Error:     No space left on device",),
    ),
    Rule(
        "TemporaryDirectoryConflict",
        STARTUP,
        "File exists",
        r"^\s{1,8}Error:\s{1,8}File exists",
        ("  Error:     File exists",),
    ),
    *said(
        "TemporaryDirectoryUnusable",
        STARTUP - 1,
        "is on the list of prohibited locations",
        "restriction for Unix's socket's path-length",
        "mkdir was unable to create the desired directory",
        "unable to create the session directory",
        "session directory could not be created",
        "unable to create session directory",
        "unable to create its session directory",
        "orte_session_dir failed",
    ),
    Rule(
        "TemporaryDirectoryUnusable",
        STARTUP - 2,
        "session_dir.c at line",
        rf"^\[{HOST}:\d{{1,9}}\] \[\[\d{{1,9}},\d{{1,9}}\],[1-9]\d{{0,6}}\] "
        "(?:ORTE|PRTE)_ERROR_LOG: ",
        ("[n1:76] [[54634,0],2] ORTE_ERROR_LOG: Error in file util/session_dir.c at line 107",),
    ),
    # The job often goes on.
    Rule(
        "TemporaryDirectoryUnusable",
        ABORTED + 3,
        "an error occurred while determining whether or not",
        examples=("shmem: mmap: an error occurred while determining whether or not /tmp/x could",),
    ),
    # --- disks and files
    *said("DiskFull", SPECIFIC, "No space left on device", "ENOSPC", "disk full", "Disk full"),
    *said(
        "DiskFull",
        SPECIFIC,
        "PytorchStreamWriter failed writing file",
        "not enough free space",
        "file write failed: time =",
    ),
    Rule(
        "DiskFull",
        SPECIFIC,
        "inline_container.cc",
        r"enforce fail at inline_container\.cc:\d{1,6}\] ?\. unexpected pos \d",
        (
            "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 12800000 vs "
            "12799890",
        ),
        instead="StorageFailed",
    ),
    *said("DiskQuotaExceeded", SPECIFIC + 1, "Disk quota exceeded", "EDQUOT", "quota exceeded on"),
    *said("ReadOnlyFileSystem", SPECIFIC, "Read-only file system", "EROFS"),
    Rule(
        "FilePermissionDenied",
        SPECIFIC - 1,
        "denied",
        r"^(?:PermissionError: |OSError: |IOError: )?\[Errno 1(?:3)?\] (?:Permission|Operation)|"
        r"^PermissionError: |^cp: |^mkdir: |^touch: |cannot create .{1,300}: Permission denied|"
        r"errno = 13|Unable to (?:open|create) .{1,300}ermission denied|"
        r"open .{1,300}: permission denied",
        (
            "PermissionError: [Errno 13] Permission denied: '/data/checkpoints'",
            "mkdir: cannot create directory '/data/x': Permission denied",
        ),
    ),
    *said("FilePermissionDenied", SPECIFIC - 1, "PermissionError at /"),
    Rule(
        "FilePermissionDenied",
        SPECIFIC - 1,
        "Operation not permitted",
        r"^PermissionError: \[Errno 1\]",
        ("PermissionError: [Errno 1] Operation not permitted: '/data'",),
    ),
    Rule(
        "FileMissing",
        SPECIFIC - 1,
        "No such file or directory",
        r"^(?:FileNotFoundError|OSError|IOError|NotADirectoryError): |errno = 2\b|"
        r"^(?:cat|cp|ls|cd|tar|mv|source|\S{0,60}sh: line \d{1,6}: cd): |"
        r"^[\w./]{1,120}(?:Error|Exception): .{0,400}No such file or directory|"
        r"NOT_FOUND: .{1,300}No such file or directory",
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'",
            "cat: /data/list: No such file or directory",
        ),
    ),
    # What perror() says; a program may go on after it.
    Rule(
        "FileMissing",
        ABORTED + 2,
        "No such file or directory",
        r"^(?:[\w.-]{1,60}: )?[\w./-]{1,300}: No such file or directory$",
        ("/data/mesh.dat: No such file or directory", "train: mesh.dat: No such file or directory"),
    ),
    Rule(
        "FilePermissionDenied",
        ABORTED + 2,
        "Permission denied",
        r"^(?:[\w.-]{1,60}: )?/[\w./-]{1,300}: Permission denied$",
        ("/data/mesh.dat: Permission denied",),
    ),
    Rule(
        "FileMissing",
        SPECIFIC - 1,
        "Error: ",
        r"^(?:FileNotFoundError|NotADirectoryError|IsADirectoryError): ",
        ("FileNotFoundError: /data/imagenet/train not found.",),
    ),
    Rule(
        "StorageFailed",
        SPECIFIC - 1,
        "Errno",
        r"\[Errno (?:5|107|108|112|113|116|121|512|521|523)\] (?:Input/output|Transport endpoint|"
        r"Cannot send|Stale|Remote I/O)",
        ("OSError: [Errno 116] Stale file handle: '/data/x'",),
    ),
    # Networks of MPI say the same of a peer that is gone.
    *(
        Rule("StorageFailed", SPECIFIC - 2, text, examples=(text,), unless=("OFI", "UCX", "MPID_"))
        for text in ("Input/output error", "Transport endpoint is not connected")
    ),
    *said("StorageFailed", SPECIFIC + 1, "unable to lock file"),
    *said(
        "StorageFailed",
        SPECIFIC - 2,
        "Stale file handle",
        "Stale NFS file handle",
        "Bus error (nonexistent physical address, file",
        "structure needs cleaning",
    ),
    # The last is torch's: a worker of a data loader could not pass its file on.
    *said(
        "OpenFilesLimit", SPECIFIC, "Too many open files", "too many open files", "items of ancdata"
    ),
    *said(
        "ProcessLimit",
        SPECIFIC,
        "can't start new thread",
        "pthread_create failed",
        "Thread creation failed: Resource temporarily unavailable",
        "fork: retry: Resource temporarily unavailable",
        "fork: Resource temporarily unavailable",
        "Cannot fork",
        "libgomp: Thread creation failed",
        "unable to create new native thread",
        "OMP: Error #34",
    ),
    Rule(
        "ProcessLimit",
        SPECIFIC,
        "Resource temporarily unavailable",
        r"^BlockingIOError: \[Errno 11\]|pthread|fork",
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable",),
    ),
    # --- ports and connections of the program
    *said(
        "PortRangeUsedUp",
        SPECIFIC + 1,
        "no port available in the range",
        "failed to bind to any port",
    ),
    Rule(
        "PortRangeUsedUp",
        STARTUP,
        "port",
        r"^\[(?:mpiexec|proxy:[\d:]{1,20})@[^\]]{1,253}\] .{1,200}: "
        r"(?:no port to bind|high port < low port)",
        ("[mpiexec@l] HYDU_sock_listen (utils/sock/sock.c:82): no port to bind",),
    ),
    *said(
        "AddressInUse",
        SPECIFIC,
        "Address already in use",
        "EADDRINUSE",
        "address already in use",
        "Only one usage of each socket address",
        "server socket has failed to listen on any local network address",
    ),
    Rule(
        "PeerLost",
        HINT - 1,
        "Error: ",
        r"^(?:ConnectionResetError|BrokenPipeError|EOFError)\b",
        ("ConnectionResetError: [Errno 104] Connection reset by peer",),
    ),
    Rule("PeerLost", HINT - 1, "EOFError", r"^EOFError$", ("EOFError",)),
    Rule(
        "ProgramException",
        EXCEPTION,
        "RecursionError",
        examples=("RecursionError: maximum recursion depth exceeded",),
    ),
)

# Open MPI's directory has the host's name in it.
_DIRECTORY = (
    r"Directory: \S{1,300}/(?:ompi|prte)\.(?P<host>[A-Za-z0-9][-\w.]{0,252})\.\d{1,10}(?:/|$)"
)
DETAILS: Final = (
    Detail(
        "TemporaryDirectoryUnusable", "Directory: ", _DIRECTORY, "Directory: /tmp/ompi.n1.0/jf.5"
    ),
)
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ()
