"""GPUs and the pods on them as rows, with what they do now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lockstep.api import names
from lockstep.api.core import Pod
from lockstep.api.device_usage import DeviceUsage, GpuUsage, ShareUsage
from lockstep.cli.views.table import Cells, Column, Table, natural, place, rows, table

MEASURES = ("GPU %", "SM %", "Tensor %", "Memory", "Watts", "°C")
GPU_COLUMNS: tuple[Column | str, ...] = (
    "Node",
    Column("GPU", number=True),
    "Model",
    *(Column(name, number=True) for name in MEASURES),
    "Pod",
    "Trouble",
    Column("UUID", wide=True),
)
POD_COLUMNS: tuple[Column | str, ...] = (
    "Namespace",
    "Pod",
    "Queue",
    "Job",
    "Node",
    "GPUs",
    *(Column(name, number=True) for name in MEASURES[:5]),
)


@dataclass(frozen=True, slots=True)
class Filter:
    """Whose devices to show; empty is everybody's."""

    queue: str = ""
    job: str = ""

    def keeps(self, pod: Pod | None) -> bool:
        """Tell whether a device that *pod* holds is shown."""
        if not (self.queue or self.job):
            return True
        labels: Mapping[str, str] = pod.metadata.labels if pod else {}
        return (not self.queue or labels.get(names.QUEUE_LABEL) == self.queue) and (
            not self.job or labels.get(names.JOB_LABEL) == self.job
        )


def by_name(pods: Iterable[Pod]) -> dict[str, Pod]:
    """Return pods by NAMESPACE/NAME."""
    return {f"{pod.metadata.namespace}/{pod.metadata.name}": pod for pod in pods}


def gpu_table(
    usages: Iterable[DeviceUsage], pods: Mapping[str, Pod], only: Filter = Filter()
) -> Table:
    """Return every GPU with what it does and for whom, by node and index."""
    rows = (
        (
            node,
            gpu.index,
            gpu.model,
            *_measures(gpu),
            ",".join(gpu.pods),
            gpu.trouble,
            gpu.uuid,
        )
        for node, gpu in _gpus(usages)
        if _shown(gpu, pods, only)
    )
    return table(GPU_COLUMNS, rows)


def pod_table(
    usages: Iterable[DeviceUsage], pods: Mapping[str, Pod], only: Filter = Filter()
) -> Table:
    """Return every pod that holds GPUs, with the means and sums of what they do."""
    held: dict[str, list[tuple[str, GpuUsage]]] = defaultdict(list)
    for node, gpu in _gpus(usages):
        for name in gpu.pods:
            held[name].append((node, gpu))
    rows = []
    for name, gpus in sorted(held.items()):
        pod = pods.get(name)
        if not only.keeps(pod):
            continue
        labels: Mapping[str, str] = pod.metadata.labels if pod else {}
        namespace, _, short = name.partition("/")
        rows.append(
            (
                namespace,
                short,
                labels.get(names.QUEUE_LABEL, ""),
                labels.get(names.JOB_LABEL, ""),
                gpus[0][0],
                ",".join(str(gpu.index) for _, gpu in gpus),
                *_sums([gpu for _, gpu in gpus]),
            )
        )
    return table(POD_COLUMNS, rows)


def summary(usages: Collection[DeviceUsage]) -> str:
    """Return what all GPUs that agents watch do, in one line; empty without any."""
    gpus = [gpu for _, gpu in _gpus(usages)]
    if not gpus:
        return ""
    busy = sum(gpu.utilization for gpu in gpus) / len(gpus)
    watts = sum(gpu.power for gpu in gpus)
    idle = sum(1 for gpu in gpus if gpu.pods and gpu.utilization == 0)
    broken = sum(1 for gpu in gpus if gpu.trouble)
    text = f"{len(gpus)} GPUs watched: {busy:.0f} % busy, {watts / 1000:.1f} kW"
    text += f", {idle} held but idle" if idle else ""
    return text + (f", {broken} in trouble" if broken else "")


def _gpus(usages: Iterable[DeviceUsage]) -> Iterator[tuple[str, GpuUsage]]:
    for usage in sorted(usages, key=lambda one: natural(one.metadata.name)):
        for gpu in usage.gpus:
            yield usage.metadata.name, gpu


def _shown(gpu: GpuUsage, pods: Mapping[str, Pod], only: Filter) -> bool:
    if not (only.queue or only.job):
        return True
    return any(only.keeps(pods.get(name)) for name in gpu.pods)


def _measures(gpu: GpuUsage) -> tuple[object, ...]:
    if gpu.trouble:
        return (None,) * len(MEASURES)
    return (
        gpu.utilization,
        gpu.sm_active,
        gpu.tensor_active,
        f"{gpu.memory_used / 1024:.1f}/{gpu.memory / 1024:.0f}Gi",
        gpu.power,
        gpu.temperature,
    )


def _sums(gpus: list[GpuUsage]) -> tuple[object, ...]:
    def mean(values: Iterable[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return round(sum(known) / len(known)) if known else None

    used, memory = sum(gpu.memory_used for gpu in gpus), sum(gpu.memory for gpu in gpus)
    return (
        mean(gpu.utilization for gpu in gpus),
        mean(gpu.sm_active for gpu in gpus),
        mean(gpu.tensor_active for gpu in gpus),
        f"{used / 1024:.1f}/{memory / 1024:.0f}Gi",
        sum(gpu.power for gpu in gpus),
    )


def share_table(usages: Iterable[DeviceUsage], pods: Mapping[str, Pod], only: Filter) -> Table:
    """Return a line for each share of each card, by node, card and pod."""
    found = [
        (usage.metadata.name, one)
        for usage in sorted(usages, key=place)
        for one in sorted(usage.shares, key=lambda one: (one.gpu, one.pod, one.container))
        if only.keeps(pods.get(one.pod))
    ]
    cells: Cells[tuple[str, ShareUsage]] = (
        ("Namespace", lambda it: it[1].pod.partition("/")[0]),
        ("Pod", lambda it: it[1].pod.partition("/")[2]),
        ("Container", lambda it: it[1].container),
        ("Queue", lambda it: queue_of(pods.get(it[1].pod))),
        ("Node", lambda it: it[0]),
        (Column("GPU", number=True), lambda it: it[1].gpu),
        (
            Column("Memory", number=True),
            lambda it: f"{it[1].memory_used}/{it[1].memory or '-'}Mi",
        ),
        (
            Column("Compute", number=True),
            lambda it: f"{it[1].compute_used}/{it[1].compute or '-'}%",
        ),
        ("Policy", lambda it: it[1].policy),
        (Column("Held back %", number=True), lambda it: it[1].throttled),
        (Column("Refused", number=True), lambda it: it[1].refused),
        ("Leases", lambda it: "not renewed" if it[1].alone else "granted"),
    )
    return rows(found, cells)


def queue_of(pod: Pod | None) -> str:
    """Return the queue of a pod; empty where it is not known."""
    return pod.metadata.labels.get(names.QUEUE_LABEL, "") if pod else ""
