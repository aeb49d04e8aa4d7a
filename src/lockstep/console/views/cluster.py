"""Nodes with their GPUs: where they are, who holds them, what they do, and what is wrong.

A row tells of one node; GPUs are runs ``[owner, how many]`` in the order of their indices, so that
a node that one job holds is short. What the user may not see is told as held by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.api import names, quantity
from lockstep.api.core import Node, Pod
from lockstep.api.device_usage import DeviceUsage
from lockstep.api.node_health import NodeHealth
from lockstep.api.wire import Json

TIERS: Final = ("topology.kubernetes.io/zone", names.SPINE_LABEL, names.LEAF_LABEL)
"""Labels by which nodes stand together where no Topology says otherwise, the widest first."""
NVLINK_LABEL: Final = "nvidia.com/gpu.clique"
OTHERS: Final = "?"
"""The owner of what the user may not see."""
OVER: Final = ("Succeeded", "Failed")


class Held(msgspec.Struct, frozen=True, gc=False):
    """A GPU, and the pod that holds it; ``share`` is the part of it."""

    namespace: str
    owner: str
    share: float = 1.0


class NodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node; the lists are as long as it has GPUs."""

    name: str
    at: tuple[str, ...]
    state: str
    why: str
    model: str
    kind: str
    cordoned: bool
    gpus: int
    held: tuple[tuple[Held, ...], ...]
    use: tuple[int | None, ...]
    bad: tuple[int, ...]
    pods: tuple[tuple[str, str, str], ...]
    """Namespace, name and owner of each pod on it."""
    cpu: float
    memory: float
    created: str

    @property
    def free(self) -> int:
        """Return how many GPUs nothing holds."""
        return sum(not one for one in self.held)


def owner_of(pod: Pod) -> str:
    """Return what a pod belongs to: its job or gang, else the pod itself."""
    labels = pod.metadata.labels
    return labels.get(names.JOB_LABEL) or labels.get(names.GANG_LABEL) or pod.metadata.name


def row(
    node: Node,
    pods: Iterable[Pod],
    usage: DeviceUsage | None,
    health: NodeHealth | None,
    tiers: Sequence[str] = TIERS,
) -> NodeRow:
    """Return the row of a node with its pods, and what is told of its devices."""
    labels, spec, status = node.metadata.labels, node.spec, node.status
    gpus = int(_amount(status.capacity.get(names.GPU)))
    held: list[list[Held]] = [[] for _ in range(gpus)]
    there = sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
    there = [pod for pod in there if pod.status.phase not in OVER]
    for pod in there:
        for index in _indices(pod):
            if index < gpus:
                held[index].append(Held(pod.metadata.namespace, owner_of(pod)))
    use: list[int | None] = [None] * gpus
    for one in usage.gpus if usage is not None else ():
        if one.index < gpus:
            use[one.index] = one.utilization
    fenced = health.status.fenced if health is not None else []
    state, why = state_of(node, health)
    return NodeRow(
        name=node.metadata.name,
        at=tuple(labels.get(label, "") for label in (*tiers, NVLINK_LABEL)),
        state=state,
        why=why,
        model=labels.get(names.GPU_MODEL_LABEL, ""),
        kind=labels.get(names.NODE_KIND_LABEL, ""),
        cordoned=spec.unschedulable,
        gpus=gpus,
        held=tuple(map(tuple, held)),
        use=tuple(use),
        bad=tuple(sorted(_gpu_numbers(fenced))),
        pods=tuple((p.metadata.namespace, p.metadata.name, owner_of(p)) for p in there),
        cpu=_amount(status.allocatable.get(names.CPU)),
        memory=_amount(status.allocatable.get(names.MEMORY)),
        created=node.metadata.creation_timestamp or "",
    )


def state_of(node: Node, health: NodeHealth | None) -> tuple[str, str]:
    """Return the state of a node in a word, and why it is that."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status != "True":
        return "NotReady", ready.message if ready is not None else ""
    if health is not None and health.status.tainted:
        return "Faulty", health.status.message
    if node.spec.unschedulable:
        return "Cordoned", ""
    if health is not None and (health.status.fenced or health.spec.findings):
        causes = "; ".join(one.cause for one in health.spec.findings)
        return "Degraded", health.status.message or causes
    return "Ready", ""


def told(one: NodeRow, may_see: Callable[[str], bool]) -> Json:
    """Return a row for a user: pods and owners of other namespaces are counted, not named."""
    runs: list[list[Any]] = []
    for held in one.held:
        owner = _owner(held, may_see)
        if runs and runs[-1][0] == owner:
            runs[-1][1] += 1
        else:
            runs.append([owner, 1])
    found: Json = {
        "name": one.name,
        "at": list(one.at),
        "state": one.state,
        "gpus": one.gpus,
        "held": runs,
        "free": one.free,
        "pods": len(one.pods),
        "model": one.model,
    }
    if one.why:
        found["why"] = one.why
    if any(value is not None for value in one.use):
        found["use"] = list(one.use)
    if one.bad:
        found["bad"] = list(one.bad)
    if one.cordoned:
        found["cordoned"] = True
    return found


def detail(one: NodeRow, may_see: Callable[[str], bool]) -> Json:
    """Return all that is known of one node."""
    pods = [[space, name, owner] for space, name, owner in one.pods if may_see(space)]
    more = {"kind": one.kind, "cpu": one.cpu, "memory": one.memory, "created": one.created}
    return {**told(one, may_see), **more, "shown": pods}


def totals(rows: Iterable[NodeRow]) -> Json:
    """Return GPUs and nodes counted: in all, held, free, and of no use now."""
    found = {"nodes": 0, "gpus": 0, "held": 0, "free": 0, "out": 0, "partly": 0}
    for one in rows:
        found["nodes"] += 1
        found["gpus"] += one.gpus
        found["held"] += one.gpus - one.free
        if one.state in ("NotReady", "Faulty", "Cordoned"):
            found["out"] += one.free
        else:
            bad = sum(not one.held[index] for index in one.bad if index < one.gpus)
            found["out"] += bad
            found["free"] += one.free - bad
            if 0 < one.free < one.gpus:
                found["partly"] += one.free
    return found


def _owner(held: Sequence[Held], may_see: Callable[[str], bool]) -> str:
    if not held:
        return ""
    first = held[0]
    more = f" +{len(held) - 1}" if len(held) > 1 else ""
    return f"{first.namespace}/{first.owner}{more}" if may_see(first.namespace) else OTHERS


def _indices(pod: Pod) -> list[int]:
    text = pod.metadata.annotations.get(names.GPUS_ANNOTATION, "")
    return [int(one) for one in text.split(",") if one.isascii() and one.isdigit()]


def _gpu_numbers(fenced: Iterable[str]) -> set[int]:
    numbers = (one.removeprefix("gpu/") for one in fenced if one.startswith("gpu/"))
    return {int(one) for one in numbers if one.isascii() and one.isdigit()}


def _amount(value: Any) -> float:
    try:
        return float(quantity.parse(str(value))) if value is not None else 0.0
    except (ValueError, TypeError):
        return 0.0


def usage_by_owner(rows: Iterable[NodeRow]) -> Mapping[tuple[str, str], tuple[int, int, int]]:
    """Return, by namespace and owner: GPUs held, of them measured, and percent in all of those."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for one in rows:
        for index, held in enumerate(one.held):
            for holder in held:
                key = (holder.namespace, holder.owner)
                gpus, measured, percent = found.get(key, (0, 0, 0))
                seen = one.use[index]
                found[key] = (gpus + 1, measured + (seen is not None), percent + (seen or 0))
    return found
