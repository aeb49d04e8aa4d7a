"""What must be true of the cluster, checked on its objects alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gangs import GPU, Wanted
from narration import Failed

from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.quantity import to_int

TIER_LABELS = {"spine": "spine", "leaf": "leaf", "node": "kubernetes.io/hostname"}


def members(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Return the bound pods of each gang."""
    bound: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.spec.node_name and (gang := pod.metadata.labels.get("lockstep.dev/gang")):
            bound[gang].append(pod)
    return bound


def whole(wanted: Sequence[Wanted], pods: Sequence[Pod]) -> tuple[list[str], list[str]]:
    """Return which gangs are placed, and which wait; no gang may be placed in part."""
    bound = members(pods)
    for gang in wanted:
        if len(bound[gang.name]) not in (0, gang.pods):
            raise Failed(f"gang {gang.name} has {len(bound[gang.name])} of {gang.pods} pods bound")
    placed = [gang.name for gang in wanted if bound[gang.name]]
    return placed, [gang.name for gang in wanted if not bound[gang.name]]


def inside_one_domain(
    wanted: Sequence[Wanted], pods: Sequence[Pod], nodes: Mapping[str, Node]
) -> int:
    """Return how many placed gangs lie inside one domain of their tier: all of them must."""
    bound = members(pods)
    seen = 0
    for gang in wanted:
        label = TIER_LABELS[gang.tier]
        domains = {nodes[pod.spec.node_name].metadata.labels[label] for pod in bound[gang.name]}
        if len(domains) > 1:
            raise Failed(f"gang {gang.name} needs one {gang.tier} and is spread over {domains}")
        seen += len(domains)
    return seen


def no_gpu_twice(pods: Sequence[Pod], nodes: Mapping[str, Node]) -> int:
    """Return how many GPUs are given out; each to one pod, and as many as the pod asked for."""
    taken: dict[tuple[str, int], str] = {}
    for pod in pods:
        asked = sum(to_int(c.resources.limits.get(GPU, 0)) for c in pod.spec.containers)
        if not pod.spec.node_name or not asked:
            continue
        given = [int(i) for i in pod.metadata.annotations["lockstep.dev/gpus"].split(",")]
        if len(set(given)) != asked:
            raise Failed(f"pod {pod.metadata.name} asked for {asked} GPUs and has {given}")
        node = nodes[pod.spec.node_name]
        for index in given:
            if not 0 <= index < to_int(node.status.allocatable[GPU]):
                raise Failed(f"pod {pod.metadata.name} has GPU {index}, which its node lacks")
            other = taken.setdefault((pod.spec.node_name, index), pod.metadata.name)
            if other != pod.metadata.name:
                raise Failed(
                    f"GPU {index} of {pod.spec.node_name} is given to {other} "
                    f"and to {pod.metadata.name}"
                )
    return len(taken)


def says_why(gangs: Mapping[str, Gang], waiting: Sequence[str]) -> None:
    """Check that each gang that waits says why."""
    for name in waiting:
        if not gangs[name].status.message:
            raise Failed(f"gang {name} waits and does not say why")


def could_not_fit(wanted: Sequence[Wanted], waiting: Sequence[str], free: int) -> None:
    """Check that gangs wait only for lack of room in one piece, and that some do."""
    if not waiting:
        raise Failed("no gang waits, although more was asked for than there is")
    asked = sum(gang.total for gang in wanted if gang.name in waiting)
    if asked <= free:
        raise Failed(f"{asked} GPUs are waited for while {free} are free")
