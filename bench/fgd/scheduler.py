"""The scheduler itself as a policy: nodes and pods as objects, places decided by its core."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bench.fgd.nodes import ListedNodes
from bench.fgd.policies import Place
from lockstep.api.containers import Container, Quantity, ResourceRequirements
from lockstep.api.core import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
)
from lockstep.api.devices import Device
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import (
    CPU,
    DEVICES_ANNOTATION,
    GPU,
    GPU_COMPUTE,
    GPU_MODEL_LABEL,
    MEMORY,
    PODS,
    SCHEDULER_NAME,
)
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.resources.columns import WHOLE_CARD
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

NAMESPACE = "default"
PODS_PER_NODE = 1_000_000
"""The protocol knows no bound."""


class SchedulerPlaces:
    """Lets the scheduler's core decide: a gang of one pod for each arrival, as in production."""

    def __init__(self, nodes: ListedNodes, past: Iterable[Request] = ()) -> None:
        """Stand the scheduler before empty *nodes*; it has seen the *past* come and go."""
        self._cluster = Cluster()
        for row in range(len(nodes)):
            self._cluster.set_node(_node(nodes, row))
        self._decider = Decider(self._cluster)
        self._serial = 0
        for request in past:
            self._forget(self._come(request))

    def choose(self, request: Request) -> Place | None:
        """Return where the scheduler puts the next pod; one without room goes away again."""
        name = self._come(request)
        self._decider.decide(float(self._serial))
        member = self._cluster.pods[NAMESPACE, name]
        if not member.node:
            self._forget(name)
            return None
        return Place(_row_of(member.node), indices_of(member.gpus))

    def changed(self, row: int) -> None:
        """Need no note: the scheduler counts what it has placed."""

    def _come(self, request: Request) -> str:
        self._serial += 1
        name = f"pod-{self._serial}"
        self._cluster.set_pod(_pod(name, request))
        return name

    def _forget(self, name: str) -> None:
        self._cluster.remove_pod(NAMESPACE, name)


def _name_of(row: int) -> str:
    return f"node-{row}"


def _row_of(node: str) -> int:
    return int(node.removeprefix("node-"))


def _node(nodes: ListedNodes, row: int) -> Node:
    cards = int(nodes.whole[row])
    model = nodes.models[nodes.model[row]]
    devices = [Device(index=i, model=model) for i in range(cards)]
    capacity: dict[str, Quantity] = {
        CPU: f"{int(nodes.cpu[row])}m",
        MEMORY: f"{int(nodes.memory[row])}Mi",
        PODS: PODS_PER_NODE,
        GPU: cards,
    }
    return Node(
        metadata=ObjectMeta(
            name=_name_of(row),
            labels={GPU_MODEL_LABEL: model} if model else {},
            annotations={DEVICES_ANNOTATION: msgspec.json.encode(devices).decode()},
        ),
        spec=NodeSpec(),
        status=NodeStatus(allocatable=capacity),
    )


def _pod(name: str, request: Request) -> Pod:
    asked: dict[str, Quantity] = {CPU: f"{request.cpu}m", MEMORY: f"{request.memory}Mi"}
    if request.shared:
        # A hundredth is the smallest share; a size between two takes the larger.
        asked[GPU_COMPUTE] = -(-request.milli * WHOLE_CARD // WHOLE)
    elif request.cards:
        asked[GPU] = request.cards
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=name),
        spec=PodSpec(
            scheduler_name=SCHEDULER_NAME,
            containers=[Container(name="main", resources=ResourceRequirements(requests=asked))],
            affinity=_affinity(sorted(request.models)) if request.models else None,
        ),
    )


def _affinity(models: list[str]) -> Affinity:
    term = NodeSelectorTerm(
        match_expressions=[
            NodeSelectorRequirement(key=GPU_MODEL_LABEL, operator="In", values=models)
        ]
    )
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=[term])))
