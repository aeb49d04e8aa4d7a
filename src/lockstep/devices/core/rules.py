"""Alarms about devices as Prometheus rules; the metrics are the agent's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lockstep.api.wire import Json


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm: when it fires, after how long, and what a person reads."""

    name: str
    condition: str
    summary: str
    remedy: str
    lasting: str = "5m"
    severity: Literal["warning", "critical"] = "warning"
    runbook: str = ""
    """Where the documentation says more."""


_WHERE = "GPU {{ $labels.gpu }} of {{ $labels.hostname }}"

ALARMS = (
    Alarm(
        "GPUXid",
        "changes(DCGM_EXP_XID_ERRORS_COUNT[5m]) > 0",
        f"{_WHERE} reported an Xid",
        "Look its number up in NVIDIA's list of Xids; DCGM_FI_DEV_XID_ERRORS tells the last.",
        lasting="0s",
    ),
    Alarm(
        "GPUMemoryErrors",
        "increase(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL[10m]) > 0",
        f"{_WHERE} has uncorrectable memory errors",
        "Drain the node and reset the GPU; replace it when they come back.",
        lasting="0s",
        severity="critical",
    ),
    Alarm(
        "GPURowRemapFailure",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE > 0",
        f"{_WHERE} cannot remap a faulty row of its memory",
        "Replace the GPU.",
        lasting="0s",
        severity="critical",
    ),
    Alarm(
        "GPURowRemapPending",
        "DCGM_FI_DEV_ROW_REMAP_PENDING > 0",
        f"{_WHERE} waits for a reset to remap a faulty row",
        "Drain the node and reset the GPU.",
        lasting="1m",
    ),
    Alarm(
        "GPUThrottled",
        "rate(DCGM_FI_DEV_THERMAL_VIOLATION[5m]) > 0.1e9",
        f"{_WHERE} was slowed down by heat for more than a tenth of the time",
        "Look at fans, inlet temperature and the neighbours in the rack.",
    ),
    Alarm(
        "GPUNarrowPCIe",
        "DCGM_FI_DEV_PCIE_LINK_WIDTH < DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
        f"{_WHERE} has {{{{ $value }}}} PCIe lanes, fewer than it can have",
        "Reseat the card or riser; look at the kernel's AER messages.",
    ),
    Alarm(
        "GPULostNVLink",
        "DCGM_FI_DEV_NVLINK_LINKS_UP < DCGM_FI_DEV_NVLINK_LINKS",
        f"{_WHERE} has only {{{{ $value }}}} of its NVLinks up",
        "Drain the node; reset GPUs and switches; look at the fabric manager's log.",
        lasting="1m",
        severity="critical",
    ),
    Alarm(
        "GPUMemoryNearlyFull",
        "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.97",
        f"{_WHERE} has less than 3 % of its memory free",
        "The next allocation may fail: a smaller batch, or more cards.",
    ),
    Alarm(
        "GPUHeldButIdle",
        'max_over_time(DCGM_FI_DEV_GPU_UTIL{pod!=""}[30m]) == 0',
        f"{_WHERE} is held by {{{{ $labels.namespace }}}}/{{{{ $labels.pod }}}} and did nothing "
        "for 30 min",
        "Ask its owner, or let the queue's limits of idle time end it.",
        runbook="docs/insight.md#gpuheldbutidle",
    ),
)


def rules() -> Json:
    """Return the alarms as a Prometheus rules file."""
    return {"groups": [group("lockstep-devices", ALARMS)]}


def group(name: str, alarms: Sequence[Alarm]) -> Json:
    """Return *alarms* as one group of a Prometheus rules file."""
    return {"name": name, "rules": [_rule(one) for one in alarms]}


def _rule(one: Alarm) -> Json:
    told = {"summary": one.summary, "remedy": one.remedy, "runbook": one.runbook}
    return {
        "alert": one.name,
        "expr": one.condition,
        "for": one.lasting,
        "labels": {"severity": one.severity},
        "annotations": {key: text for key, text in told.items() if text},
    }
