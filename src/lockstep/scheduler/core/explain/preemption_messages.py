"""What is said of a workload that takes the place of others."""

from __future__ import annotations

from collections import Counter

from lockstep.scheduler.core.model.workload import Member
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import in_words as violations
from lockstep.scheduler.core.state.nominations import Nomination


def in_words(nomination: Nomination, cluster: Cluster) -> str:
    """Return what a nominated workload waits for."""
    nodes = sorted(set(nomination.nodes.values()))
    where = wording.listing(nodes) if len(nodes) < 4 else wording.count(len(nodes), "node")
    if nomination.purpose == "Defragmenting":
        return f"others move so that it fits: {where} kept free for it until they have left"
    if nomination.purpose == "Moving":
        return f"moves so that another gang fits: {where} kept free for it"
    namespace = nomination.workload.namespace
    there = Counter(_name(m, namespace) for m in still_there(nomination, cluster))
    ranked = sorted(there.items(), key=lambda one: (-one[1], one[0]))
    parts = [f"{name} ({wording.count(number, 'pod')})" for name, number in ranked[:3]]
    if len(ranked) > 3:
        parts.append(f"{len(ranked) - 3} more")
    who = wording.listing(parts) if parts else "pods that leave"
    budgets = violations(nomination.violates, namespace)
    more = f"; {budgets}, and nothing else makes room" if budgets else ""
    return f"takes the place of {who}: {where} kept free for it until they have ended{more}"


def _name(member: Member, namespace: str) -> str:
    if member.namespace != namespace:
        return "other namespaces"
    workload = member.workload
    return f"{workload.kind.lower()} {workload.name}" if workload else f"pod {member.name}"


def still_there(nomination: Nomination, cluster: Cluster) -> list[Member]:
    """Return the victims of one nomination that are still there."""
    return [
        cluster.pods[key]
        for key, uid in nomination.victims.items()
        if key in cluster.pods and cluster.pods[key].uid == uid and cluster.pods[key].holds
    ]
