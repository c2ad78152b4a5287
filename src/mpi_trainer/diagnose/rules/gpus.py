"""GPUs, CUDA, NCCL, and what frameworks say of them."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    EXCEPTION,
    FOLLOWS,
    HOST,
    PROOF,
    SPECIFIC,
    Cause,
    Detail,
    Rule,
    said,
)

CAUSES: Final = (
    Cause(
        "GpuOutOfMemory",
        "A GPU has no memory left",
        "Model, activations and optimizer of this rank do not fit, or two ranks share one GPU.",
        "Lower the batch size, use mixed precision or gradient checkpointing, and check that each "
        "rank takes its own GPU (`torch.cuda.set_device(local_rank)`).",
        ("OutOfMemory", "ProgramException"),
    ),
    Cause(
        "GpuUnavailable",
        "The program finds no GPU",
        "The pod asked for none, the node's driver is absent, or CUDA_VISIBLE_DEVICES hides it.",
        "Ask for GPUs: `resources.limits` with nvidia.com/gpu (`--gpu 1`), and remove "
        "CUDA_VISIBLE_DEVICES from `env`.",
        ("ProgramException",),
    ),
    Cause(
        "GpuDriverMismatch",
        "CUDA and the node's driver do not fit",
        "The image's CUDA is newer than the driver allows, or lacks code for this GPU.",
        "Take an image with an older CUDA, or nodes with a newer driver (`nvidia-smi` shows it).",
        ("GpuUnavailable", "ProgramException"),
    ),
    Cause(
        "GpuIndexInvalid",
        "A rank uses a GPU that does not exist",
        "It takes its global rank as the device's number, or there are more ranks than GPUs.",
        "Use the local rank (OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID) as device, and set "
        "`slotsPerWorker` to the number of GPUs.",
        ("GpuUnavailable", "ProgramException"),
    ),
    Cause(
        "GpuProgramError",
        "A program on the GPU failed",
        "An index is out of range, or memory is used that is not the program's: usually wrong "
        "labels or token ids.",
        "Run once with CUDA_LAUNCH_BLOCKING=1 in `env`, so that the traceback names the right "
        "line, and check that labels are within range.",
        ("ProgramException",),
    ),
    Cause(
        "GpuHardwareFailed",
        "A GPU is broken",
        "The driver reports uncorrectable memory errors, or a device that does not answer.",
        "Cordon the node (`kubectl cordon NODE`), run the job again, and let the GPU be checked.",
    ),
    Cause(
        "GpuLibraryFailed",
        "cuDNN, cuBLAS or a similar library failed",
        "Often too little GPU memory, or libraries of versions that do not belong together.",
        "Lower the batch size first; then install CUDA, cuDNN and the framework in versions that "
        "belong together.",
        ("ProgramException",),
    ),
    Cause(
        "NcclError",
        "NCCL cannot communicate",
        "A socket, an InfiniBand device or shared memory that NCCL uses failed.",
        "Run once with NCCL_DEBUG=INFO in `env`; NCCL_SOCKET_IFNAME=eth0 and NCCL_IB_DISABLE=1 "
        "show whether the network is the reason.",
        ("ProgramException",),
    ),
    Cause(
        "NcclPeerLost",
        "NCCL lost another rank",
        "That rank has ended; why, only its own output says.",
        "Read the output of the rank that ended first: `odh mpijob logs NAME`.",
        ("NcclError", "ProgramException"),
    ),
)

RULES: Final = (
    *said(
        "GpuOutOfMemory",
        SPECIFIC + 1,
        "CUDA out of memory",
        "HIP out of memory",
        "XPU out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "CUDA error: out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "OOM when allocating tensor",
        "cudaMalloc failed: out of memory",
        "RESOURCE_EXHAUSTED: Out of memory",
        "cudaErrorOutOfMemory",
        "MPS backend out of memory",
    ),
    Rule(
        "GpuOutOfMemory",
        SPECIFIC + 1,
        "Cuda failure",
        r"Cuda failure (?:\d{1,4} )?'out of memory'",
        ("include/alloc.h:185 NCCL WARN Cuda failure 2 'out of memory'",),
    ),
    *said(
        "GpuUnavailable",
        SPECIFIC,
        "No CUDA GPUs are available",
        "Found no NVIDIA driver on your system",
        "no CUDA-capable device is detected",
        "CUDA_ERROR_NO_DEVICE",
        "Torch not compiled with CUDA enabled",
        "cudaErrorNoDevice",
        "NVML: Driver Not Loaded",
        "couldn't communicate with the NVIDIA driver",
        "Failed to initialize NVML",
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "system not yet initialized",
        "No supported gpu backend found",
        "No HIP GPUs are available",
        "is only supported with GPUs, no GPUs found",
        "CUDA unknown error - this may be due to",
        "CUDA-capable device(s) is/are busy or unavailable",
    ),
    Rule(
        "GpuUnavailable",
        SPECIFIC,
        "torch.cuda.is_available() is False",
        examples=(
            "Attempting to deserialize object on a CUDA device but "
            "torch.cuda.is_available() is False.",
        ),
    ),
    *said(
        "GpuDriverMismatch",
        SPECIFIC,
        "CUDA driver version is insufficient",
        "Driver/library version mismatch",
        "no kernel image is available for execution",
        "forward compatibility was attempted on non supported HW",
        "is too old (found version",
        "unsatisfied condition: cuda>=",
        "is not compatible with the current PyTorch installation",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "compiled with an unsupported toolchain",
        "cudaErrorInsufficientDriver",
        "CUDA_ERROR_INVALID_IMAGE",
    ),
    *said(
        "GpuIndexInvalid",
        SPECIFIC,
        "invalid device ordinal",
        "CUDA_ERROR_INVALID_DEVICE",
        "Invalid device id",
        "Duplicate GPU detected",
        "cudaErrorInvalidDevice",
    ),
    *said(
        "GpuProgramError",
        SPECIFIC,
        "device-side assert triggered",
        "an illegal memory access was encountered",
        "unspecified launch failure",
        "misaligned address",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_ASSERT",
        "too many resources requested for launch",
        "an illegal instruction was encountered",
        "Memory access fault by GPU node",
    ),
    *said(
        "GpuHardwareFailed",
        PROOF - 4,
        "uncorrectable ECC error",
        "uncorrectable NVLink error",
        "GPU has fallen off the bus",
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "GPU is lost",
        "cudaErrorECCUncorrectable",
        "hardware exception on the GPU",
    ),
    Rule(
        "GpuHardwareFailed",
        SPECIFIC,
        "NVRM: Xid",
        r"NVRM: Xid \([^)]{1,60}\): (?:48|63|64|74|79|92|94|95|119|120|140)\b",
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",),
    ),
    Rule(
        "GpuLibraryFailed",
        SPECIFIC - 1,
        "_STATUS_",
        r"\b(?:CUDNN|CUBLAS|CUSPARSE|CUSOLVER|CUFFT)_STATUS_(?!ALLOC_FAILED|SUCCESS)[A-Z_]{3,60}",
        ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",),
    ),
    Rule(
        "GpuProgramError",
        SPECIFIC - 2,
        "CUDA error:",
        r"CUDA error: (?!out of memory|initialization)\w",
        ("RuntimeError: CUDA error: operation not permitted when stream is capturing",),
    ),
    *said(
        "NcclPeerLost",
        FOLLOWS,
        "ncclRemoteError",
        "remote process exiting prematurely",
        "Connection closed by remote peer",
        "NCCL communicator was aborted",
        "socketProgressOpt: Call to recv from",
        "socketPollConnect: Connect to",
        "Net : Connection closed by",
    ),
    *said(
        "LockedMemoryLimit",
        SPECIFIC + 1,
        "failed with error Cannot allocate memory",
        "ibv_reg_mr failed with error Cannot allocate",
    ),
    # Where another rank has failed, NCCL says the same, so nothing weighs more than an exception.
    Rule(
        "NcclError",
        EXCEPTION - 4,
        "NCCL WARN",
        r"NCCL WARN (?:Call to|Cuda failure|Failed to|Could not|Unable to|Timeout waiting|NET/)",
        ("n1:9:9 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_reg_mr failed",),
        unless=(
            "Connection closed",
            "socketProgress",
            "socketPoll",
            "out of memory",
            "Failed to open libibverbs",
        ),
    ),
    *said(
        "NcclError",
        EXCEPTION - 1,
        "ncclSystemError",
        "ncclUnhandledCudaError",
        "ncclInternalError",
        "ncclInvalidUsage",
        "unhandled system error",
        "unhandled cuda error",
        "NCCL Error 1:",
        "NCCL Error 2:",
        "ncclInvalidArgument",
    ),
    Rule(
        "NcclError",
        EXCEPTION - 3,
        "NCCL WARN",
        rf"^{HOST}:\d{{1,9}}:\d{{1,9}} \[\d{{1,3}}\] .{{0,120}}NCCL WARN .{{0,200}}"
        r"(?:failed|Failed|error|Error|Mismatched)",
        (
            "n1:33:51 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.2 "
            "failed : No route to host",
        ),
        unless=(
            "Connection closed by remote peer",
            "remote process exiting",
            "Connection reset",
            "Failed to open libibverbs",
        ),
    ),
    Rule(
        "NcclError",
        EXCEPTION - 5,
        "NET/IB : Got completion",
        r"NET/IB : Got completion from peer .{1,200} (?:with error|status=)",
        ("n1:1:2 [0] NET/IB : Got completion from peer 10.0.0.2<4791> with error 12, opcode 0",),
    ),
)

DETAILS: Final[tuple[Detail, ...]] = ()
BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final = (
    "successful NUMA node read from SysFS",
    "Unable to register cuDNN factory",
    "Unable to register cuBLAS factory",
    "Unable to register cuFFT factory",
    "TORCH_USE_CUDA_DSA",
    "could be asynchronously reported",
)
