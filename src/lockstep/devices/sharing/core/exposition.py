"""What shares use, as Prometheus text: in our own names and in HAMi's, old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Use:
    """What one share has and uses of one of its cards; bytes, and nanoseconds since it began."""

    namespace: str
    pod: str
    container: str
    uuid: str
    number: int
    """Which of the container's cards it is."""
    limit: int
    compute: int
    policy: str
    memory: int
    busy: int
    throttled: int
    refused: int
    unknown: int
    fallback: int
    unheld: int = 0
    """Launches whose completion the front could not measure."""
    passed: int = 0
    """Launches that the gate let through because running work may depend on them."""
    stranger: str = ""
    """The last call that the front did not know."""
    recent: int = 0
    """Hundredths of the card's time that it used lately."""

    @property
    def key(self) -> Key:
        """Return what tells the share of a card from all others of the node."""
        return self.namespace, self.pod, self.container, self.uuid

    def labels(self, names: Iterable[str]) -> str:
        """Return its labels under other names, in this order: pod first, card last."""
        values = (self.namespace, self.pod, self.container, str(self.number), self.uuid)
        pairs = zip(names, values, strict=True)
        return ",".join(f'{name}="{value}"' for name, value in pairs)


OURS: Final = ("namespace", "pod", "container", "number", "UUID")
HAMIS: Final = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
HAMIS_OLD: Final = ("podnamespace", "podname", "ctrname", "vdeviceid", "deviceuuid")
S: Final = 1e-9

Value = Callable[[Use], float]
GAUGES: Final[dict[str, tuple[str, Value]]] = {
    "lockstep_share_memory_limit_bytes": (
        "Memory of the GPU that the share may have; 0 without limit.",
        lambda one: one.limit,
    ),
    "lockstep_share_memory_used_bytes": (
        "Memory of the GPU that the container's processes hold.",
        lambda one: one.memory,
    ),
    "lockstep_share_compute_limit_ratio": (
        "Part of the GPU's time that the share may use; 0 is what others leave.",
        lambda one: one.compute / 100,
    ),
}
COUNTERS: Final[dict[str, tuple[str, Value]]] = {
    "lockstep_share_busy_seconds_total": (
        "Time of the GPU that the share was metered for.",
        lambda one: one.busy * S,
    ),
    "lockstep_share_throttled_seconds_total": (
        "Time that work of the share waited for its lease.",
        lambda one: one.throttled * S,
    ),
    "lockstep_share_refused_total": (
        "Allocations that were refused for the share's limit.",
        lambda one: one.refused,
    ),
    "lockstep_share_unknown_calls_total": (
        "Calls of the driver that were looked up and are not known to the front.",
        lambda one: one.unknown,
    ),
    "lockstep_share_unleased_total": (
        "Processes that found their leases not renewed.",
        lambda one: one.fallback,
    ),
}
HAMI_GAUGES: Final[dict[str, tuple[str, Value]]] = {
    "hami_vgpu_memory_used_bytes": ("vGPU device memory usage in bytes", lambda one: one.memory),
    "hami_vgpu_memory_limit_bytes": ("vGPU device memory limit in bytes", lambda one: one.limit),
    "hami_container_device_utilization_ratio": (
        "Container device utilization ratio (0-100)",
        lambda one: one.recent,
    ),
}
OLD_HAMI_GAUGES: Final[dict[str, tuple[str, Value]]] = {
    "vGPU_device_memory_usage_in_bytes": ("vGPU device usage", lambda one: one.memory),
    "vGPU_device_memory_limit_in_bytes": ("vGPU device limit", lambda one: one.limit),
    "Device_utilization_desc_of_container": (
        "Container device utilization description",
        lambda one: one.recent,
    ),
}
METRICS: Final = (
    (GAUGES, "gauge", OURS),
    (COUNTERS, "counter", OURS),
    (HAMI_GAUGES, "gauge", HAMIS),
    (OLD_HAMI_GAUGES, "gauge", HAMIS_OLD),
)


def exposition(uses: Iterable[Use]) -> bytes:
    """Return the text of all metrics of shares; empty without any share."""
    found = list(uses)
    lines: list[str] = []
    for metrics, kind, labels in METRICS if found else ():
        for name, (about, value) in metrics.items():
            lines.append(f"# HELP {name} {about}\n# TYPE {name} {kind}\n")
            lines += [f"{name}{{{one.labels(labels)}}} {value(one):.10g}\n" for one in found]
    return "".join(lines).encode()
