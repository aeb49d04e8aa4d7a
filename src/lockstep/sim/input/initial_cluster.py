"""The cluster that a simulation begins with, read from objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import Node, Pod, PodDisruptionBudget, PriorityClass
from lockstep.api.names import API_VERSION, ELAPSED_ANNOTATION, GANG_LABEL, SNAPSHOT_ANNOTATION
from lockstep.api.node_policy import NodePolicy
from lockstep.api.node_pool import NodePool
from lockstep.api.price_list import PriceList
from lockstep.api.queue import Queue
from lockstep.api.topology import Topology
from lockstep.api.wire import Json, Wire, convert
from lockstep.compat.hypernodes import HYPERNODES, HyperNode, HyperNodes
from lockstep.nodes.simulated.fleet import fleet, node_object
from lockstep.nodes.simulated.spec import NodeGroup
from lockstep.pools.core.pool import problems
from lockstep.scheduler.core.model.node_info import NodeInfo
from lockstep.scheduler.core.model.workload import PodKey, WorkloadKey
from lockstep.scheduler.core.runtime.offline import cluster_of
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.annotation_values import seconds
from lockstep.sim.input.amounts import BadAmount, check_node, check_pod

EPOCH = timestamp.parse("2026-01-01T00:00:00Z")
"""The Unix time that a simulation's second 0 stands for, where its input does not say one."""
T = TypeVar("T", bound=Wire)

BUILT_IN_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class InputError(ValueError):
    """An object of the input cannot be used; the message names it, the field and the remedy."""


@dataclass(slots=True)
class InitialCluster:
    """Nodes and what governs them. Node objects are kept, so that a node can fail and return."""

    nodes: dict[str, Node] = field(default_factory=dict)
    queues: list[Queue] = field(default_factory=list)
    topologies: list[Topology] = field(default_factory=list)
    node_policies: list[NodePolicy] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    """They allow as many disruptions at any time as at the start: who goes is back at once."""
    pools: list[NodePool] = field(default_factory=list)
    price_lists: list[PriceList] = field(default_factory=list)
    pods: dict[PodKey, Pod] = field(default_factory=dict)
    """Pods that stand on nodes at the start; those of no job that is simulated stay for ever."""
    epoch: float = EPOCH
    """The Unix time at the start: that of a snapshot, so that what is in it lies in the past."""
    _card_memory: int | None = None

    @property
    def card_memory(self) -> int:
        """Return the MiB of the largest GPU, by which shares of memory count before they stand."""
        if self._card_memory is None:
            layouts = (NodeInfo.of(node).layout for node in self.nodes.values())
            cards = (card.memory for layout in layouts for card in layout.cards)
            self._card_memory = max(cards, default=0)
        return self._card_memory

    def priority(self, name: str) -> int:
        """Return the value of a PriorityClass; without a name that of the global default.

        Raises:
            InputError: when there is no such class.
        """
        if not name:
            return max((c.value for c in self.priority_classes if c.global_default), default=0)
        for known in self.priority_classes:
            if known.metadata.name == name:
                return known.value
        if name in BUILT_IN_PRIORITIES:
            return BUILT_IN_PRIORITIES[name]
        raise InputError(
            f"priorityClassName {name!r} is no PriorityClass of the cluster; "
            "add the PriorityClass to it, or leave the name out"
        )

    def by_gang(self) -> dict[WorkloadKey, list[Pod]]:
        """Return the pods of each gang that stand on nodes at the start."""
        found: dict[WorkloadKey, list[Pod]] = {}
        for pod in self.pods.values():
            gang = pod.metadata.labels.get(GANG_LABEL)
            if gang and pod.spec.node_name in self.nodes:
                key = WorkloadKey("Gang", pod.metadata.namespace, gang)
                found.setdefault(key, []).append(pod)
        return found

    def cluster(self) -> Cluster:
        """Return the scheduler's state at the start."""
        cluster = cluster_of(
            nodes=self.nodes.values(),
            pods=self.pods.values(),
            topologies=self.topologies,
            node_policies=self.node_policies,
            priority_classes=self.priority_classes,
            queues=self.queues,
            budgets=self.budgets,
        )
        cluster.budgets.follow(cluster.pods)
        return cluster


def read_initial_cluster(objects: Iterable[Json]) -> InitialCluster:
    """Return the world that *objects* describe; kinds that say nothing about a cluster are skipped.

    Raises:
        InputError: when an object is not what its kind says, or there is neither node nor pool.
    """
    world, hypernodes = InitialCluster(), HyperNodes()
    for obj in objects:
        if obj.get("kind") == HYPERNODES.kind and obj.get("apiVersion") == HYPERNODES.api_version:
            hypernodes.set(view(obj, HyperNode))
        else:
            _take(world, obj)
    _put_under(world, hypernodes)
    if not (world.nodes or world.pools):
        raise InputError("the cluster has no Node; add Node objects, or give a SPEC such as 64x8")
    return world


def _put_under(world: InitialCluster, hypernodes: HyperNodes) -> None:
    """Give nodes the domains of the HyperNodes that hold them, and the world their tiers."""
    topology = hypernodes.topology()
    if topology is None:
        return
    world.nodes = {name: hypernodes.labelled(node) for name, node in world.nodes.items()}
    for name, problem in hypernodes.problems.items():
        raise InputError(f"HyperNode {name}: {problem}; mend its members")
    world.topologies.append(topology)


def initial_cluster_of(groups: Iterable[NodeGroup]) -> InitialCluster:
    """Return a world of nodes as ``lockstep up --simulate`` would make them, for any job.

    All of such a world is simulated, so that nothing has to be kept off its nodes.
    """
    bodies = (node_object(node, 0.0) for node in fleet(list(groups)).values())
    nodes = (convert({**body, "spec": {}}, Node) for body in bodies)
    return InitialCluster(nodes={node.metadata.name: node for node in nodes})


def _take(world: InitialCluster, obj: Json) -> None:
    match obj.get("apiVersion"), obj.get("kind"):
        case "v1", "Node":
            node = view(obj, Node)
            world.nodes[node.metadata.name] = node
            world.epoch = max(world.epoch, _taken(node))
        case "v1", "Pod":
            pod = view(obj, Pod)
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed"):
                world.pods[pod.metadata.namespace, pod.metadata.name] = pod
        case "policy/v1", "PodDisruptionBudget":
            world.budgets.append(view(obj, PodDisruptionBudget))
        case "scheduling.k8s.io/v1", "PriorityClass":
            world.priority_classes.append(view(obj, PriorityClass))
        case group, "Queue" if group == API_VERSION:
            world.queues.append(view(obj, Queue))
        case group, "Topology" if group == API_VERSION:
            world.topologies.append(view(obj, Topology))
        case group, "NodePolicy" if group == API_VERSION:
            world.node_policies.append(view(obj, NodePolicy))
        case group, "NodePool" if group == API_VERSION:
            world.pools.append(_pool(obj))
        case group, "PriceList" if group == API_VERSION:
            world.price_lists.append(view(obj, PriceList))


def _pool(obj: Json) -> NodePool:
    """Return a pool as it is before anything was asked of it.

    Raises:
        InputError: when it cannot be used.
    """
    pool = view({**obj, "status": {}}, NodePool)
    for problem in problems(pool):
        raise InputError(f"NodePool {pool.metadata.name}: {problem}")
    return pool


def _taken(node: Node) -> float:
    """Return the Unix time of the snapshot that a node is from; the default where it is from none.

    Raises:
        InputError: when that is no time.
    """
    text = node.metadata.annotations.get(SNAPSHOT_ANNOTATION)
    if text is None:
        return EPOCH
    at = timestamp.read(text)
    if at is None:
        raise InputError(
            f"Node {node.metadata.name}: annotation {SNAPSHOT_ANNOTATION} is {text!r}; it must be "
            "a time such as 2026-01-01T00:00:00Z, or be left out"
        )
    return at


def stood(pod: Pod, otherwise: float) -> float:
    """Return the seconds that a pod of a snapshot has stood, as it says itself."""
    stated = seconds(pod.metadata.annotations.get(ELAPSED_ANNOTATION, ""))
    return otherwise if stated is None else stated


def view(obj: Mapping[str, Any], type_: type[T]) -> T:
    """Return *obj* as a view.

    Raises:
        InputError: naming the object and the field that is wrong.
    """
    try:
        found = convert(obj, type_)
    except msgspec.ValidationError as error:
        raise InputError(f"{_named(obj)}: {error}; mend the field") from None
    try:
        if isinstance(found, Node):
            check_node(found)
        elif isinstance(found, Pod):
            check_pod(found.spec)
    except BadAmount as error:
        raise InputError(f"{_named(obj)}: {error}") from None
    return found


def _named(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{obj.get('kind')} {name}".strip()
