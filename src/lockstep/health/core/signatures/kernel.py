"""What a node's kernel and its services say of faults, beside Xids."""

# A pattern and a sample are one line each, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from functools import partial
from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v
from lockstep.health.core.signatures.xids import SXID_SOURCE

_LINUX: Final = "https://docs.kernel.org/"
_NPD: Final = (
    "https://github.com/kubernetes/node-problem-detector/blob/master/config/kernel-monitor.json"
)


OF_MEMORY: Final = frozenset(
    {
        "a process used more memory than its container may",
        "the job used more memory than it may",
        "the node ran out of memory",
    }
)
"""Causes of which a node's kernel tells when it kills: the lines do not name the job."""


_k = partial(Signature, where="kernel")

KERNEL: Final[tuple[Signature, ...]] = (
    _k(
        r"fallen off the bus and is not responding",
        *v.HARDWARE_ISOLATE,
        0.98,
        "the GPU has fallen off the bus",
        "NVRM: The NVIDIA GPU 0000:17:00.0 NVRM: has fallen off the bus and is not responding to "
        "commands.",
        "https://docs.nvidia.com/deploy/xid-errors/",
    ),
    _k(
        r"NVRM: API mismatch|Driver/library version mismatch",
        *v.SOFTWARE_ISOLATE,
        0.9,
        "driver and library are of different versions",
        "NVRM: API mismatch: the client has the version 535.104.05, but this kernel module has "
        "the version 535.86.10.",
        "https://github.com/NVIDIA/nvidia-docker/issues/1631",
    ),
    _k(
        r"SXid.*?: (?:\d+, (?:Fatal|.* Fatal)|(?:12028|20034|19084|22011), Data)|detected NVSwitch fatal error",
        *v.HARDWARE_ISOLATE,
        0.95,
        "a fatal NVSwitch error",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 46 LTSSM Fault Up",
        SXID_SOURCE,
    ),
    _k(
        r"SXid.*?: \d+|detected NVSwitch non-fatal error",
        *v.HARDWARE_OBSERVE,
        0.8,
        "a non-fatal NVSwitch error",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress",
        SXID_SOURCE,
    ),
    _k(
        r"number of NVSwitches don't match",
        *v.HARDWARE_ISOLATE,
        0.9,
        "an NVSwitch is missing",
        "fabricmanager: number of NVSwitches don't match",
        SXID_SOURCE,
    ),
    _k(
        r"AER: .*(?:Uncorrected|Uncorrectable).*Fatal|AER: .*\(Fatal\)|severity=Uncorrect\w+ \(Fatal",
        *v.HARDWARE_ISOLATE,
        0.9,
        "a fatal PCIe error",
        "pcieport 0000:16:00.0: AER: Uncorrected (Fatal) error received: 0000:17:00.0",
        _LINUX + "PCI/pcieaer-howto.html",
    ),
    _k(
        r"available PCIe bandwidth, limited by .* PCIe x\d+ link",
        *v.HARDWARE_OBSERVE,
        0.7,
        "a PCIe link is slower or narrower than the device can",
        "mlx5_core 0000:1a:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 "
        "link at 0000:16:02.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
        _LINUX + "PCI/pcieaer-howto.html",
    ),
    _k(
        r"AER: .*Correct(?:ed|able)|PCIe Bus Error: severity=Corrected",
        *v.HARDWARE_OBSERVE,
        0.6,
        "corrected PCIe errors",
        "pcieport 0000:16:00.0: AER: Corrected error received: 0000:17:00.0",
        _LINUX + "PCI/pcieaer-howto.html",
    ),
    _k(
        r"\[Hardware Error\].*(?:severity: fatal|Uncorrected|Machine Check: \d+ Bank|Fatal)|mce: .*Machine check events? logged.*fatal",
        *v.HARDWARE_ISOLATE,
        0.9,
        "a fatal error of CPU or memory",
        "{1}[Hardware Error]: event severity: fatal",
        _NPD,
    ),
    _k(
        r"EDAC .*(?:\bUE\b)",
        *v.HARDWARE_ISOLATE,
        0.9,
        "an uncorrectable memory error",
        "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        _LINUX + "admin-guide/ras.html",
    ),
    _k(
        r"EDAC .*(?:\bCE\b)",
        *v.HARDWARE_OBSERVE,
        0.7,
        "corrected memory errors",
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        _LINUX + "admin-guide/ras.html",
    ),
    _k(
        r"mlx5_core .*(?:[Ll]ink down|Cable unplugged|[Mm]odule .*unplugged)",
        *v.NETWORK_ISOLATE,
        0.75,
        "the link of a network card is down",
        "mlx5_core 0000:1a:00.0 ens1f0: Link down",
        "https://docs.nvidia.com/networking/",
    ),
    _k(
        r"insufficient power on the PCIe slot|Detected insufficient power",
        *v.HARDWARE_ISOLATE,
        0.85,
        "a network card gets too little power",
        "mlx5_core 0000:1a:00.0: mlx5_pcie_event: Detected insufficient power on the PCIe slot (27W)",
        "https://docs.nvidia.com/networking/",
    ),
    _k(
        r"Port module event.*High Temperature",
        *v.HARDWARE_ISOLATE,
        0.85,
        "an optical module is too hot",
        "mlx5_core 0000:1a:00.0: Port module event[error]: module 0, High Temperature",
        "https://docs.nvidia.com/networking/",
    ),
    _k(
        r"mlx5.*(?:health poll failed|unrecoverable|cmd.*timeout|device's health compromised)",
        *v.HARDWARE_ISOLATE,
        0.85,
        "the firmware of a network card does not answer",
        "mlx5_core 0000:1a:00.0: poll_health:800: device's health compromised - reached miss count",
        "https://docs.nvidia.com/networking/",
    ),
    _k(
        r"NETDEV WATCHDOG: .*transmit queue .*timed out",
        *v.NETWORK_ISOLATE,
        0.85,
        "a network card is stuck",
        "NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 3 timed out",
        _NPD,
    ),
    _k(
        r"oom-kill:constraint=CONSTRAINT_MEMCG|Memory cgroup out of memory",
        *v.USER_STOP,
        0.9,
        "a process used more memory than its container may",
        "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:33554432kB",
        _NPD,
    ),
    _k(
        r"oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)|Out of memory: Kill(?:ed)? process",
        *v.PLATFORM_ISOLATE,
        0.7,
        "the node ran out of memory",
        "Out of memory: Killed process 4711 (python3) total-vm:33554432kB, anon-rss:1kB",
        _NPD,
    ),
    _k(
        r"nfs: server .* not responding|nfs: server .* timed out",
        *v.STORAGE_PAUSE,
        0.85,
        "an NFS server does not respond",
        "nfs: server 10.0.0.2 not responding, still trying",
        "https://github.com/leptonai/gpud",
    ),
    _k(
        r"task .* blocked for more than \d+ seconds",
        "storage",
        "isolate_node",
        0.6,
        "a process hangs in the kernel",
        "INFO: task python3:4711 blocked for more than 120 seconds.",
        _NPD,
        weak=True,
    ),
    _k(
        r"[Rr]emounting filesystem read-only|nvme .*timeout|Buffer I/O error|blk_update_request: I/O error"
        r"|critical medium error|I/O error, dev ",
        *v.HARDWARE_ISOLATE,
        0.85,
        "a local disk fails",
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
        _NPD,
    ),
    _k(
        r"segfault at .* in lib(?:nccl|cuda)",
        *v.SOFTWARE_RESTART,
        0.6,
        "a library crashed",
        "python3[4711]: segfault at 0 ip 00007f sp 00007f error 4 in libnccl.so.2[7f+1]",
        "https://github.com/NVIDIA/nccl/issues",
    ),
    _k(
        r"nvidia-peermem .*invalid context",
        "software",
        "observe",
        0.5,
        "a GPUDirect context is gone",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping",
        "https://github.com/Mellanox/nv_peer_memory",
        cascade=True,
    ),
)
