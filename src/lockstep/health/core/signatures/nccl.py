"""What NCCL, Gloo and the meeting of ranks say of faults."""

# A pattern is one line, to be searched for.
# ruff: noqa: E501, S108

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

NCCL: Final[tuple[Signature, ...]] = (
    Signature(
        "NET/Plugin|NCCL INFO .*[Pp]lugin",
        v.UNKNOWN_OBSERVE(0.1, "cascade"),
        "NCCL found no plugin for the network, and uses its own code",
    ),
    Signature(
        r"NET/IB ?: Got completion .*(?:error|status=) ?5\b",
        v.NETWORK_OBSERVE(0.4, "cascade"),
        "RDMA work was flushed after another error",
    ),
    Signature(
        "ibv_modify_qp failed.*(?:unreachable|timed out|Invalid argument)",
        v.NETWORK_STOP(0.7),
        "there is no route between two network cards",
    ),
    Signature(
        "no socket interface found|No usable listening interface",
        v.USER_STOP(0.8),
        "NCCL finds no network interface of the wanted name",
    ),
    Signature(
        r"failed to extend /dev/shm/nccl-|posix_fallocate failed : No space|insufficient shared memory \(shm\)",
        v.USER_STOP(0.92),
        "/dev/shm is too small",
    ),
    Signature(
        "Call to shm_open failed : Permission denied",
        v.PLATFORM_ISOLATE(0.8),
        "/dev/shm may not be written",
    ),
    Signature(
        "Duplicate GPU detected|Multiple Ranks are using the same GPU|ncclInvalidUsage",
        v.USER_STOP(0.95),
        "two ranks use one GPU",
    ),
    Signature(
        "Mismatched NCCL version detected",
        v.USER_STOP(0.95),
        "ranks have different versions of NCCL",
    ),
    Signature(
        r"rank \d+ of \d+ ranks has already checked in",
        v.USER_STOP(0.7),
        "two processes call themselves the same rank",
    ),
    Signature(
        r"Bootstrap Root : mismatch in",
        v.USER_RESTART(0.6),
        "ranks disagree about how many they are",
    ),
    Signature(
        "Detected mismatch between collectives on ranks|Message truncated : received",
        v.USER_STOP(0.95),
        "ranks call different collectives",
    ),
    Signature(
        "Cuda failure .*out of memory",
        v.USER_STOP(0.85),
        "the GPU's memory is too small for the program",
    ),
    Signature(
        "NCCL WARN Cuda failure", v.UNKNOWN_OBSERVE(0.3, "cascade"), "a CUDA call of NCCL failed"
    ),
    Signature(
        r"ncclInternalError|ncclUnhandledCudaError|unhandled system error|ncclSystemError|ncclRemoteError|unhandled cuda error|DistBackendError|NCCL error in|NCCL [Ee]rror:? \d|Proxy Service .*Failed|proxy\.cc:\d+ NCCL WARN",
        v.UNKNOWN_RESTART(0.35, "cascade"),
        "NCCL failed without a cause of its own",
    ),
    Signature(
        "[Cc]onnect to .*(?:returned|failed ?:) ?Connection (?:refused|timed out)",
        v.NETWORK_RESTART(0.5, "weak"),
        "another rank cannot be reached",
    ),
    Signature(
        "Watchdog caught collective operation timeout",
        v.UNKNOWN_OBSERVE(0.4, "weak"),
        "a collective did not end in time: some rank hangs or is late",
    ),
    Signature(
        r"watchdog got stuck for \d+ seconds|Heartbeat monitor timed out",
        v.SOFTWARE_RESTART(0.5, "weak"),
        "a call into CUDA or NCCL, or the interpreter lock, blocks a rank",
    ),
    Signature(
        r"store->get\('0'\) got error|Timeout waiting for key|wait timeout after \d+ms, keys",
        v.UNKNOWN_RESTART(0.4, "weak"),
        "rank 0 is late or dead",
    ),
    Signature(
        r"client socket has timed out|The client socket has failed to connect|gloo::\w+Exception|store based barrier|initializing process group",
        v.NETWORK_RESTART(0.6, "weak"),
        "the meeting point of the ranks cannot be reached",
    ),
    Signature(
        "EADDRINUSE|errno: 98|Address already in use", v.SOFTWARE_RESTART(0.85), "a port is taken"
    ),
    Signature(
        "RendezvousClosedError|RendezvousTimeoutError",
        v.PLATFORM_RESTART(0.5, "weak"),
        "the gang did not come together",
    ),
    Signature(
        r"Gloo connectFullMesh failed.*127\.",
        v.NETWORK_STOP(0.8),
        "a rank gives out its loopback address",
    ),
    Signature(
        "Gloo connectFullMesh failed", v.NETWORK_RESTART(0.5, "weak"), "a rank cannot be reached"
    ),
)
