"""What a line in no known words is about, by the part of the system that it names."""

# A pattern is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.api.diagnosis import Act, Class
from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

_LINUX: Final = "https://man7.org/linux/man-pages/man3/errno.3.html"
SURE: Final = 0.4
"""Confidence of these verdicts, below that of any known words."""

_FAILS: Final = r".*(?:[Ee]rror|ERROR|FAIL|[Ff]ail|[Tt]imed? ?out|[Aa]bort|[Hh]ung|[Cc]annot|could not|not respond|unreachable|refused|[Ll]ost|\bdown\b|[Cc]orrupt)"
_PARTS: Final[tuple[tuple[str, Class, Act, str, str], ...]] = (
    (
        "a disk",
        *v.HARDWARE_ISOLATE,
        r"(?:\bnvme\d|\bsd[a-z]\b|\bscsi\b|\bata\d|\bmd\d+\b|EXT4-fs|XFS|BTRFS|\bblk_|SMART)"
        + _FAILS,
        "kernel: scsi host0: error handler thread failed",
    ),
    (
        "a network card or its fabric",
        *v.NETWORK_ISOLATE,
        r"(?:\bmlx\d|\bixgbe\b|\bi40e\b|\bbnxt|\bena\b|\beth\d|\bib\d\b|\bQP\b|RDMA|\brdma|ibv_|\bUCX\b|InfiniBand|RoCE)"
        + _FAILS,
        "rdma_io.cc: QP 7 is in a state of error",
    ),
    (
        "the GPU's driver",
        *v.SOFTWARE_ISOLATE,
        r"(?:NVML|NVRM|nvidia|amdgpu|\bkfd\b|rocm|[Gg][Pp][Uu] driver|dcmi|npu-smi)" + _FAILS,
        "nvidia-persistenced failed to initialize",
    ),
    (
        "shared storage",
        *v.STORAGE_PAUSE,
        r"(?i)(?:\bnfs|lustre|ceph|gpfs|juicefs|\bfuse|gluster|weka|beegfs|\bs3\b|minio|\bpvc?\b|volume|\bmount)"
        + _FAILS,
        "juicefs: write of slice 7 failed",
    ),
    (
        "the cluster's management of the job",
        *v.PLATFORM_RESTART,
        r"(?i)(?:slurm|\bsrun\b|kubelet|\bcri\b|containerd|\boci\b|sandbox|scheduler)" + _FAILS,
        "containerd: failed to reserve the name of a container",
    ),
    (
        "the connection between ranks",
        *v.NETWORK_RESTART,
        r"(?i)(?:socket|\bstore\b|rendezvous|\bpeer\b|\bmaster\b|heartbeat|\bgrpc|collective|\bhccl)"
        + _FAILS,
        "rendezvous: heartbeat to the master failed",
    ),
)

FALLBACK: Final[tuple[Signature, ...]] = tuple(
    Signature(
        pattern,
        class_,
        action,
        SURE,
        f"{part} failed, in words that no rule knows",
        sample,
        _LINUX,
        weak=True,
    )
    for part, class_, action, pattern, sample in _PARTS
)
"""What a line in no known words is about, by the part that it names; what else is found precedes."""
