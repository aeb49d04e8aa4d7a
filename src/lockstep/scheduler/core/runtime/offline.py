"""The core over a list of objects instead of events: for asking why, away from the scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep.api.core import Node, Pod, PodDisruptionBudget, PriorityClass
from lockstep.api.gang import Gang
from lockstep.api.node_policy import NodePolicy
from lockstep.api.queue import Queue
from lockstep.api.topology import Topology
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.defrag.defragmenter import Look
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.decisions import Placement, Verdict
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler would say and do about one workload, given the objects."""

    verdict: Verdict | None
    """Why it waits; None when it does not wait, or has a place."""
    position: int | None
    """Its place in its queue, 1 for the next one."""
    placement: Placement | None
    """Where it would go now, were it the only one that waits."""


def cluster_of(
    *,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    gangs: Iterable[Gang] = (),
    topologies: Iterable[Topology] = (),
    node_policies: Iterable[NodePolicy] = (),
    priority_classes: Iterable[PriorityClass] = (),
    queues: Iterable[Queue] = (),
    budgets: Iterable[PodDisruptionBudget] = (),
) -> Cluster:
    """Return the state that the scheduler has when it sees these objects."""
    cluster = Cluster()
    for topology in topologies:
        cluster.set_topology(topology)
    for policy in node_policies:
        cluster.set_node_policy(policy)
    for priority_class in priority_classes:
        cluster.set_priority_class(priority_class)
    for queue in queues:
        cluster.set_queue(queue)
    for budget in budgets:
        cluster.budgets.set(budget)
    for node in nodes:
        cluster.set_node(node)
    for gang in gangs:
        cluster.set_gang(gang)
    for pod in pods:
        cluster.set_pod(pod)
    return cluster


def inquire(cluster: Cluster, namespace: str, name: str) -> Answer:
    """Return why the gang (or the pod of no gang) called *name* waits, and where it would go.

    Raises:
        KeyError: when there is neither such a gang nor such a waiting pod.
    """
    gang, pod = WorkloadKey("Gang", namespace, name), WorkloadKey("Pod", namespace, name)
    workload = cluster.workloads.get(gang) or cluster.workloads[pod]
    decider = Decider(cluster)
    if workload.key not in decider.waiting():
        return Answer(None, None, None)
    position = decider.pending_queue.places()[workload.key]
    problem = decider.problem(workload)
    placement = admission.place(cluster, workload, problem) if problem is not None else None
    return Answer(None if placement else explain(cluster, workload), position, placement)


def moves_for(cluster: Cluster, workload: Workload, now: float) -> MovePlan | str:
    """Return which moves of others would let a gang that waits start; else why there are none."""
    decider = Decider(cluster)
    if workload.key not in decider.waiting():
        return "it does not wait"
    for key in decider.pending_queue.all():
        other = cluster.workloads[key]
        if other.nominated:
            decider.preemptor.adopt(other, decider.problem(other))
    problem = decider.problem(workload)
    if problem is None or workload.key in cluster.nominations:
        return explain(cluster, workload).message
    return decider.defragmenter.propose(Look(workload, problem, now))
