"""What shares use, as Prometheus text: in our own names and in HAMi's, old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final


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
    recent: int = 0
    """Hundredths of the card's time that it used lately."""

    def labels(self, names: Iterable[str]) -> str:
        """Return its labels under other names, in this order: pod first, card last."""
        values = (self.namespace, self.pod, self.container, str(self.number), self.uuid)
        pairs = zip(names, values, strict=True)
        return ",".join(f'{name}="{value}"' for name, value in pairs)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a share."""

    name: str
    kind: str
    help: str
    value: Callable[[Use], float]
    labels: tuple[str, ...]


OURS: Final = ("namespace", "pod", "container", "number", "UUID")
HAMIS: Final = ("namespace", "pod", "container", "vdevice_index", "device_uuid")
HAMIS_OLD: Final = ("podnamespace", "podname", "ctrname", "vdeviceid", "deviceuuid")
S: Final = 1e-9

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "lockstep_share_memory_limit_bytes",
        "gauge",
        "Memory of the GPU that the share may have; 0 without limit.",
        lambda one: one.limit,
        OURS,
    ),
    Metric(
        "lockstep_share_memory_used_bytes",
        "gauge",
        "Memory of the GPU that the container's processes hold.",
        lambda one: one.memory,
        OURS,
    ),
    Metric(
        "lockstep_share_compute_limit_ratio",
        "gauge",
        "Part of the GPU's time that the share may use; 0 is what others leave.",
        lambda one: one.compute / 100,
        OURS,
    ),
    Metric(
        "lockstep_share_busy_seconds_total",
        "counter",
        "Time of the GPU that the share was metered for.",
        lambda one: one.busy * S,
        OURS,
    ),
    Metric(
        "lockstep_share_throttled_seconds_total",
        "counter",
        "Time that work of the share waited for its lease.",
        lambda one: one.throttled * S,
        OURS,
    ),
    Metric(
        "lockstep_share_refused_total",
        "counter",
        "Allocations that were refused for the share's limit.",
        lambda one: one.refused,
        OURS,
    ),
    Metric(
        "lockstep_share_unknown_calls_total",
        "counter",
        "Calls of the driver that were looked up and are not known to the front.",
        lambda one: one.unknown,
        OURS,
    ),
    Metric(
        "lockstep_share_unleased_total",
        "counter",
        "Processes that found their leases not renewed.",
        lambda one: one.fallback,
        OURS,
    ),
    Metric(
        "hami_vgpu_memory_used_bytes",
        "gauge",
        "vGPU device memory usage in bytes",
        lambda one: one.memory,
        HAMIS,
    ),
    Metric(
        "hami_vgpu_memory_limit_bytes",
        "gauge",
        "vGPU device memory limit in bytes",
        lambda one: one.limit,
        HAMIS,
    ),
    Metric(
        "hami_container_device_utilization_ratio",
        "gauge",
        "Container device utilization ratio (0-100)",
        lambda one: one.recent,
        HAMIS,
    ),
    Metric(
        "vGPU_device_memory_usage_in_bytes",
        "gauge",
        "vGPU device usage",
        lambda one: one.memory,
        HAMIS_OLD,
    ),
    Metric(
        "vGPU_device_memory_limit_in_bytes",
        "gauge",
        "vGPU device limit",
        lambda one: one.limit,
        HAMIS_OLD,
    ),
    Metric(
        "Device_utilization_desc_of_container",
        "gauge",
        "Container device utilization description",
        lambda one: one.recent,
        HAMIS_OLD,
    ),
)


def exposition(uses: Iterable[Use]) -> bytes:
    """Return the text of all metrics of shares; empty without any share."""
    found = list(uses)
    lines: list[str] = []
    for metric in METRICS if found else ():
        lines.append(f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n")
        lines += [
            f"{metric.name}{{{one.labels(metric.labels)}}} {metric.value(one):.10g}\n"
            for one in found
        ]
    return "".join(lines).encode()
