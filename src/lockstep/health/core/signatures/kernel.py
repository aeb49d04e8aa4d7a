"""What a node's kernel and its services say of faults, beside Xids."""

# A pattern is one line, to be searched for.
# ruff: noqa: E501

from __future__ import annotations

from functools import partial
from typing import Final

from lockstep.health.core.signature import Signature
from lockstep.health.core.signatures import verdicts as v

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
        v.HARDWARE_ISOLATE(0.98),
        "the GPU has fallen off the bus",
    ),
    _k(
        r"NVRM: API mismatch|Driver/library version mismatch",
        v.SOFTWARE_ISOLATE(0.9),
        "driver and library are of different versions",
    ),
    _k(
        r"SXid.*?: (?:\d+, (?:Fatal|.* Fatal)|(?:12028|20034|19084|22011), Data)|detected NVSwitch fatal error",
        v.HARDWARE_ISOLATE(0.95),
        "a fatal NVSwitch error",
    ),
    _k(
        r"SXid.*?: \d+|detected NVSwitch non-fatal error",
        v.HARDWARE_OBSERVE(0.8),
        "a non-fatal NVSwitch error",
    ),
    _k(r"number of NVSwitches don't match", v.HARDWARE_ISOLATE(0.9), "an NVSwitch is missing"),
    _k(
        r"AER: .*(?:Uncorrected|Uncorrectable).*Fatal|AER: .*\(Fatal\)|severity=Uncorrect\w+ \(Fatal",
        v.HARDWARE_ISOLATE(0.9),
        "a fatal PCIe error",
    ),
    _k(
        r"available PCIe bandwidth, limited by .* PCIe x\d+ link",
        v.HARDWARE_OBSERVE(0.7),
        "a PCIe link is slower or narrower than the device can",
    ),
    _k(
        r"AER: .*Correct(?:ed|able)|PCIe Bus Error: severity=Corrected",
        v.HARDWARE_OBSERVE(0.6),
        "corrected PCIe errors",
    ),
    _k(
        r"\[Hardware Error\].*(?:severity: fatal|Uncorrected|Machine Check: \d+ Bank|Fatal)|mce: .*Machine check events? logged.*fatal",
        v.HARDWARE_ISOLATE(0.9),
        "a fatal error of CPU or memory",
    ),
    _k(r"EDAC .*(?:\bUE\b)", v.HARDWARE_ISOLATE(0.9), "an uncorrectable memory error"),
    _k(r"EDAC .*(?:\bCE\b)", v.HARDWARE_OBSERVE(0.7), "corrected memory errors"),
    _k(
        r"mlx5_core .*(?:[Ll]ink down|Cable unplugged|[Mm]odule .*unplugged)",
        v.NETWORK_ISOLATE(0.75),
        "the link of a network card is down",
    ),
    _k(
        r"insufficient power on the PCIe slot|Detected insufficient power",
        v.HARDWARE_ISOLATE(0.85),
        "a network card gets too little power",
    ),
    _k(
        r"Port module event.*High Temperature",
        v.HARDWARE_ISOLATE(0.85),
        "an optical module is too hot",
    ),
    _k(
        r"mlx5.*(?:health poll failed|unrecoverable|cmd.*timeout|device's health compromised)",
        v.HARDWARE_ISOLATE(0.85),
        "the firmware of a network card does not answer",
    ),
    _k(
        r"NETDEV WATCHDOG: .*transmit queue .*timed out",
        v.NETWORK_ISOLATE(0.85),
        "a network card is stuck",
    ),
    _k(
        r"oom-kill:constraint=CONSTRAINT_MEMCG|Memory cgroup out of memory",
        v.USER_STOP(0.9),
        "a process used more memory than its container may",
    ),
    _k(
        r"oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)|Out of memory: Kill(?:ed)? process",
        v.PLATFORM_ISOLATE(0.7),
        "the node ran out of memory",
    ),
    _k(
        r"nfs: server .* not responding|nfs: server .* timed out",
        v.STORAGE_PAUSE(0.85),
        "an NFS server does not respond",
    ),
    _k(
        r"task .* blocked for more than \d+ seconds",
        v.STORAGE_ISOLATE(0.6, "weak"),
        "a process hangs in the kernel",
    ),
    _k(
        r"[Rr]emounting filesystem read-only|nvme .*timeout|Buffer I/O error|blk_update_request: I/O error"
        r"|critical medium error|I/O error, dev ",
        v.HARDWARE_ISOLATE(0.85),
        "a local disk fails",
    ),
    _k(r"segfault at .* in lib(?:nccl|cuda)", v.SOFTWARE_RESTART(0.6), "a library crashed"),
    _k(
        r"nvidia-peermem .*invalid context",
        v.SOFTWARE_OBSERVE(0.5, "cascade"),
        "a GPUDirect context is gone",
    ),
)
