"""What programs, CUDA and the system say of faults in the log of a rank."""

# A pattern is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

PROGRAM: Final[tuple[Signature, ...]] = (
    Signature(
        "uncorrectable ECC error encountered",
        v.HARDWARE_RESET(0.95),
        "an uncorrectable memory error of the GPU",
    ),
    Signature(
        "uncorrectable NVLink error|cudaErrorContained|memory over nvlink or a hardware error",
        v.HARDWARE_ISOLATE(0.93),
        "an uncorrectable NVLink error",
    ),
    Signature("GPU is lost", v.HARDWARE_ISOLATE(0.95), "the GPU cannot be reached any more"),
    Signature(
        "(?:CUBLAS|CUDNN)_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)",
        v.USER_STOP(0.65),
        "cuBLAS could not start, mostly for want of memory",
    ),
    Signature(
        "device-side assert triggered|CUDA_ERROR_ASSERT|Assertion .*(?:srcIndex|t >= 0|index out of bounds|input_val)",
        v.USER_STOP(0.93),
        "an index or a label is out of range",
    ),
    Signature(
        "illegal (?:memory access|instruction|address) was encountered|Memory access fault by GPU",
        v.USER_STOP(0.75),
        "a kernel accessed memory that is not its own",
    ),
    Signature(
        "unspecified launch failure|launch timed out and was terminated|CUDNN_STATUS_MAPPING_ERROR|CUDNN_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR)",
        v.SOFTWARE_RESTART(0.45),
        "a kernel died on the GPU",
    ),
    Signature(
        "no kernel image is available|hipErrorNoBinaryForGpu|not compatible with the current PyTorch",
        v.USER_STOP(0.93),
        "the program was not built for this model of GPU",
    ),
    Signature(
        "CUDA driver version is (?:older|insufficient)|Error 80[34]:|driver on your system is too old",
        v.SOFTWARE_ISOLATE(0.8),
        "the node's driver is too old for the program",
    ),
    Signature(
        "Error 802: system not yet initialized",
        v.SOFTWARE_ISOLATE(0.9),
        "the fabric manager does not run",
    ),
    Signature(
        "Failed to initialize NVML: Unknown Error",
        v.SOFTWARE_RESTART(0.85),
        "the container lost its access to the GPUs",
    ),
    Signature(
        "nvidia-container-cli: .*(?:error|failed)",
        v.SOFTWARE_ISOLATE(0.85),
        "the container runtime cannot reach the GPUs",
    ),
    Signature(
        "Cannot re-initialize CUDA in forked subprocess",
        v.USER_STOP(0.97),
        "a forked process uses CUDA",
    ),
    Signature(
        r"undefined symbol: |GLIBC\w*_.* not found",
        v.USER_STOP(0.9),
        "libraries in the image do not fit together",
    ),
    Signature("OOMKilled", v.USER_STOP(0.9), "the container used more memory than it may"),
    Signature(
        r"exitcode\s*: -7\b|[Bb]us error|Signal 7 \(SIGBUS\)",
        v.USER_STOP(0.75),
        "shared memory ran out",
    ),
    Signature(
        r"exitcode\s*: -(?:15|6)\b|Signal (?:15|6) \(SIG(?:TERM|ABRT)\)",
        v.UNKNOWN_OBSERVE(0.3, "cascade"),
        "a rank was ended after another one",
    ),
    Signature("^before the start: /dev/shm", v.USER_STOP(0.95), "shared memory is too small"),
    Signature(
        "^before the start: .*locked in memory",
        v.SOFTWARE_ISOLATE(0.8),
        "the limit of locked memory is too low for RDMA",
    ),
    Signature(
        "^before the start: PET_NPROC_PER_NODE",
        v.USER_STOP(0.95),
        "the pod is told another number of ranks than the job has",
    ),
    Signature(
        "received 0 items of ancdata|Too many open files|Errno 24\\b|inotify watch limit|can't start new thread|pthread_create|Resource temporarily unavailable|fork: retry|max_user_(?:instances|watches)",
        v.USER_STOP(0.88),
        "the limit of open files is too low",
    ),
    Signature(
        "DataLoader worker .*(?:exited unexpectedly|is killed)|DataLoader timed out",
        v.USER_STOP(0.5, "weak"),
        "a data loader's process died",
    ),
    Signature(
        "Expected to have finished reduction",
        v.USER_STOP(0.95),
        "parameters of the model are not used in the loss",
    ),
    Signature(
        r"[Nn]o space left on device|Errno 28\b|ENOSPC|No such device or address.*shm|设备上没有空间|磁盘空间不足",
        v.USER_STOP(0.8),
        "a disk is full",
    ),
    Signature(
        "[Dd]isk quota exceeded|Errno 122\\b|EDQUOT|exceeded quota",
        v.USER_STOP(0.93),
        "the quota of a file system is used up",
    ),
    Signature(
        "PytorchStreamReader failed|MetadataIncompleteBuffer|invalid header or archive",
        v.SOFTWARE_RESTART(0.85),
        "a checkpoint is not whole",
    ),
    Signature(
        r"size mismatch for |[Ss]ize mismatch between saved|(?:Missing|Unexpected) key\(s\) in state_dict",
        v.USER_STOP(0.95),
        "the checkpoint is not of this model",
    ),
    Signature(
        "NodeLost|NodeShutdown|The node (?:was low on resource|had condition)|[Nn]ode failure on|NODE_FAIL",
        v.PLATFORM_RESTART(0.85),
        "the cluster took the pod away",
    ),
    Signature(
        "Name or service not known|[Tt]emporary failure in name resolution|[Cc]ould not resolve (?:host|name)|no such host|Name does not resolve|nodename nor servname|getaddrinfo (?:failed|ENOTFOUND)",
        v.PLATFORM_RESTART(0.6),
        "a name cannot be resolved",
    ),
    Signature(
        "invalid device ordinal|CUDA_ERROR_INVALID_DEVICE",
        v.USER_STOP(0.9),
        "the program asks for a GPU that it does not have",
    ),
    Signature(
        "shapes cannot be multiplied|Expected all tensors to be on the same device|must match the size of tensor",
        v.USER_STOP(0.95),
        "tensors in the program do not fit together",
    ),
    Signature(
        "unrecognized arguments:|the following arguments are required|invalid choice: |error: argument -|[Nn]o such option|invalid (?:account|partition) |Invalid account or|Invalid qos|[Nn]ode configuration is not available|violates accounting|couldn't chdir|is forbidden|admission webhook .*denied",
        v.USER_STOP(0.9),
        "the command's arguments are wrong",
    ),
)

GENERIC: Final[tuple[Signature, ...]] = (
    Signature(
        r"(?:^|\s)(?:ModuleNotFoundError|ImportError|FileNotFoundError|IsADirectoryError|NotADirectoryError|PermissionError|KeyError|NameError|AttributeError|TypeError|ValueError|IndexError|ZeroDivisionError|AssertionError|SyntaxError|IndentationError|NotImplementedError|UnboundLocalError|RecursionError|UnicodeDecodeError|json\.decoder\.JSONDecodeError)\b",
        v.USER_STOP(0.85, "weak"),
        "the program raised an error",
    ),
    Signature(
        r"(?:^|\s)(?:[A-Za-z_][\w.]*(?:Error|Exception)): ",
        v.USER_STOP(0.55, "weak"),
        "the program raised an error",
    ),
)
"""What any other error of a program looks like."""
