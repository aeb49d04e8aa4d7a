"""Standing where it was planned, in any order of victims and of pods placed meanwhile.

A place chosen anew when the first victims have gone would depend on which of them is quickest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from lockstep.scheduler.core.model.decisions import Assignment, Placement
from lockstep.scheduler.core.model.workload import Member, Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.resources.device_allocation import NOTHING, Spot
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.nominations import Nomination, Purpose

VICTIM_SECONDS = 1.0
"""Seconds for which a workload waits for its victims before it stands wherever else there is
room."""


def as_planned(
    cluster: Cluster, workload: Workload, problem: Problem, nomination: Nomination
) -> Placement | None:
    """Return the place that a workload was to get, while it is kept for none; None where it is
    not free, or where more is to be decided about it than whether it is.
    """
    waiting = {member.name: member for member in chain.from_iterable(problem.members)}
    if nomination.version != cluster.table.version or waiting.keys() != nomination.nodes.keys():
        return None
    if workload.bound or problem.signature != nomination.signature:
        return None
    if any(waiting[name].shape is not shape for name, shape in nomination.shapes.items()):
        return None
    placement = Placement(
        workload.key,
        tuple(
            Assignment(waiting[name], Spot(node, nomination.grants.get(name, NOTHING)))
            for name, node in nomination.nodes.items()
        ),
    )
    return (
        placement if _free(cluster, placement) and _allowed(cluster, workload, placement) else None
    )


def awaits(cluster: Cluster, nomination: Nomination, now: float) -> bool:
    """Return whether a workload still waits for pods that leave its place, and for nothing else."""
    if nomination.version != cluster.table.version:
        return False
    if not nomination.since <= now < nomination.since + VICTIM_SECONDS:
        return False
    pods = cluster.pods
    return any(
        key in pods and pods[key].uid == uid and pods[key].holds
        for key, uid in nomination.victims.items()
    )


def _free(cluster: Cluster, placement: Placement) -> bool:
    """Return whether nodes have all that members take there, the very devices included."""
    table = cluster.table
    by_node: dict[str, list[Assignment]] = defaultdict(list)
    for one in placement.assignments:
        by_node[one.spot.node].append(one)
    for node, there in by_node.items():
        row = table.rows[node]
        left, devices = table.free[:, row].copy(), table.free_devices(row)
        for one in there:
            shape, gpus = one.member.shape, one.spot.grant.gpus
            if shape.share is not None or shape.goes_by_connections:
                return False
            if gpus.bit_count() != shape.gpus or gpus & ~devices:
                return False
            left[shape.columns] -= shape.amounts
            devices &= ~gpus
        if (left < 0).any():
            return False
    return True


def _allowed(cluster: Cluster, workload: Workload, placement: Placement) -> bool:
    """Return whether the queue may still use so much."""
    account = admission.limited(cluster, workload)
    if account is None:
        return True
    asked = admission.counted(cluster, placement)
    return cluster.ledger.lacking(account, asked, cluster.capacity()) is None


def nominated(
    cluster: Cluster,
    placement: Placement,
    queue: str,
    *,
    purpose: Purpose,
    victims: Iterable[Member],
) -> Nomination:
    """Return the nomination of a queue's workload for the place that was found for it."""
    placed = placement.assignments
    return Nomination(
        placement.workload,
        {one.member.name: one.spot.node for one in placed},
        {one.member.name: one.member.shape for one in placed},
        queue,
        admission.counted(cluster, placement),
        {one.member.name: one.spot.grant for one in placed},
        {member.key: member.uid for member in victims},
        purpose=purpose,
    )
