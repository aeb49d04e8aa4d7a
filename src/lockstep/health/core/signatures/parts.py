"""What a line in no known words is about, by the part of the system that it names."""

# A pattern is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

from lockstep.health.core.signature import Signature, Verdict
from lockstep.health.core.signatures import verdicts as v

SURE: Final = 0.4
"""Confidence of these verdicts, below that of any known words."""

_FAILS: Final = r".*(?:[Ee]rror|ERROR|FAIL|[Ff]ail|[Tt]imed? ?out|[Aa]bort|[Hh]ung|[Cc]annot|could not|not respond|unreachable|refused|[Ll]ost|\bdown\b|[Cc]orrupt)"
_PARTS: Final[tuple[tuple[str, Verdict, str], ...]] = (
    (
        "a disk",
        v.HARDWARE_ISOLATE(SURE, "weak"),
        r"(?:\bnvme\d|\bsd[a-z]\b|\bscsi\b|\bata\d|\bmd\d+\b|EXT4-fs|XFS|BTRFS|\bblk_|SMART)"
        + _FAILS,
    ),
    (
        "a network card or its fabric",
        v.NETWORK_ISOLATE(SURE, "weak"),
        r"(?:\bmlx\d|\bixgbe\b|\bi40e\b|\bbnxt|\bena\b|\beth\d|\bib\d\b|\bQP\b|RDMA|\brdma|ibv_|\bUCX\b|InfiniBand|RoCE)"
        + _FAILS,
    ),
    (
        "the GPU's driver",
        v.SOFTWARE_ISOLATE(SURE, "weak"),
        r"(?:NVML|NVRM|nvidia|amdgpu|\bkfd\b|rocm|[Gg][Pp][Uu] driver|dcmi|npu-smi)" + _FAILS,
    ),
    (
        "shared storage",
        v.STORAGE_PAUSE(SURE, "weak"),
        r"(?i)(?:\bnfs|lustre|ceph|gpfs|juicefs|\bfuse|gluster|weka|beegfs|\bs3\b|minio|\bpvc?\b|volume|\bmount)"
        + _FAILS,
    ),
    (
        "the cluster's management of the job",
        v.PLATFORM_RESTART(SURE, "weak"),
        r"(?i)(?:slurm|\bsrun\b|kubelet|\bcri\b|containerd|\boci\b|sandbox|scheduler)" + _FAILS,
    ),
    (
        "the connection between ranks",
        v.NETWORK_RESTART(SURE, "weak"),
        r"(?i)(?:socket|\bstore\b|rendezvous|\bpeer\b|\bmaster\b|heartbeat|\bgrpc|collective|\bhccl)"
        + _FAILS,
    ),
)

FALLBACK: Final[tuple[Signature, ...]] = tuple(
    Signature(pattern, verdict, f"{part} failed, in words that no rule knows")
    for part, verdict, pattern in _PARTS
)
"""What a line in no known words is about, by the part that it names; what else is found precedes."""
