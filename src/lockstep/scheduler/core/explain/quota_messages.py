"""What is said of queues: which limit binds, by how much, and what a queue holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.api import timestamp
from lockstep.api.names import CPU, GPU, MEMORY
from lockstep.api.queue_rules import flaws
from lockstep.scheduler.core.explain.amounts import amount
from lockstep.scheduler.core.explain.quota_remedies import QuotaRemedies, binding
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.quota.account import (
    Account,
    Amounts,
    OverQuota,
    in_thousandths,
)
from lockstep.scheduler.core.quota.dominant_share import dominant_share
from lockstep.scheduler.core.quota.usage_history import history
from lockstep.scheduler.core.resources import wording
from lockstep.scheduler.core.state.cluster import Cluster

OVER_QUOTA = "OverQuota"
_FIELDS = {
    "limit": "of its limit",
    "borrowingLimit": "that it may have with its borrowingLimit",
}


def quantity(resource: str, value: int) -> str | int:
    """Return an amount of an account as a quantity."""
    if in_thousandths(resource):
        return value // 1000 if value % 1000 == 0 else f"{value}m"
    if resource == MEMORY and value % 2**20 == 0:
        return f"{value // 2**20}Mi"
    return value


def quota_verdict(cluster: Cluster, workload: Workload, problem: Problem) -> Verdict | None:
    """Return which limit of which queue keeps the workload waiting; None when none does.

    Limits for which it matters where a pod goes, such as those of single models of GPUs, bind only
    where there would be room but for them.
    """
    over = binding(cluster, workload, problem)
    if over is None:
        return None
    asked = admission.asked(cluster, problem)
    if over.resource in asked:  # of members that differ, those that have room may take more
        asked[over.resource] = max(asked[over.resource], over.asked)
    needs = wording.listing([amount(n, v) for n, v in _first(asked) if v])
    short = amount(over.resource, over.short)
    kept = cluster.ledger.reserved.get(over.account.name, {}).get(over.resource, 0)
    used, most = amount(over.resource, over.used - kept), amount(over.resource, over.amount)
    remedy = QuotaRemedies(cluster, workload, problem).sentence(over)
    if over.field == "lending":
        return Verdict(
            OVER_QUOTA,
            f"needs {needs}; the cluster has {most}, {used.partition(' ')[0]} of them in use or "
            f"kept by queues that do not lend them: {short} short",
            remedy,
        )
    return Verdict(
        OVER_QUOTA,
        f"needs {needs}; queue {over.account.queue} uses {used.partition(' ')[0]} of the {most} "
        f"{_FIELDS[over.field]}: {short} short"
        + _holders(cluster, over, workload)
        + _kept(cluster, over, workload),
        remedy,
    )


def _holders(cluster: Cluster, over: OverQuota, workload: Workload) -> str:
    """Return what holds most of it in the queue; only the workload's own namespace is named."""
    held: dict[str, int] = {}
    for account in cluster.ledger.accounts.values():
        if over.account not in account.chain:
            continue
        for key, members in account.holding.items():
            total = sum(m.charged.get(over.resource, 0) for m in members.values())
            own = key.namespace == workload.key.namespace
            name = f"{key.kind.lower()} {key.name}" if own else "other namespaces"
            held[name] = held.get(name, 0) + total
    ranked = sorted(((n, v) for n, v in held.items() if v), key=lambda one: (-one[1], one[0]))
    parts = [f"{name} ({amount(over.resource, value)})" for name, value in ranked[:3]]
    if len(ranked) > 3:
        parts.append(f"others ({amount(over.resource, sum(v for _, v in ranked[3:]))})")
    return f"; held by {wording.listing(parts)}" if parts else ""


def _kept(cluster: Cluster, over: OverQuota, workload: Workload) -> str:
    """Return when the workload itself has quota by promise, and for whom of those in line some
    of the limit is kept, with the names in its own namespace.
    """
    said, name = "", over.account.name
    for held in sorted(cluster.reservations, key=lambda one: one.at):
        until = timestamp.show(held.at)
        given = held.given.get(name, {}).get(over.resource, 0)
        kept = held.asked.get(over.resource, 0) - given if name in held.given else 0
        if held.workload == workload.key:
            said += f"; by the run times stated enough is given back by {until}, and kept for it"
        elif kept > 0:
            own = held.workload.namespace == workload.key.namespace
            whom = (
                f"{held.workload.kind.lower()} {held.workload.name}" if own else "another namespace"
            )
            some = amount(over.resource, kept)
            said += f"; {some} kept for {whom} until {until} from what may run longer"
    return said


def _first(amounts: Mapping[str, int]) -> list[tuple[str, int]]:
    order = {GPU: 0, CPU: 1, MEMORY: 2}
    return sorted(amounts.items(), key=lambda one: (order.get(one[0], 3), one[0]))


def queue_status(cluster: Cluster, name: str, pending: Mapping[str, int]) -> dict[str, Any]:
    """Return what a queue should show of itself, but for when its conditions changed.

    *pending* counts the workloads that wait by the queue that they name.

    Raises:
        KeyError: when there is no such queue.
    """
    queue = cluster.ledger.specs[name]
    account, problem = cluster.ledger.accounts[name], cluster.ledger.problems.get(name)
    used = {resource: value for resource, value in account.used.items() if value}
    borrowed: Amounts = {
        resource: account.over(resource)
        for resource in used
        if resource in account.guaranteed and account.over(resource)
    }
    beyond, part, _ = dominant_share(account, cluster.capacity())
    parent = cluster.ledger.specs.get(queue.spec.parent or "")
    remarks = flaws(queue.spec, parent.spec if parent is not None and parent != queue else None)
    return {
        "pending": sum(pending.get(one, 0) for one in _names(account)),
        "running": running(account),
        "used": {r: quantity(r, used[r]) for r in sorted(used)},
        "borrowed": {r: quantity(r, borrowed[r]) for r in sorted(borrowed)},
        "share": f"{100 * part:.1f}%" if beyond else "0.0%",
        **history(queue.status, account, cluster.ledger.aged or 0.0, cluster.capacity()),
        "observedGeneration": queue.metadata.generation,
        "conditions": [
            {
                "type": "Ready",
                "status": "False" if problem or remarks else "True",
                "reason": "Misplaced" if problem else "Misstated" if remarks else "Ready",
                "message": "; ".join(filter(None, (problem, *remarks))),
            }
        ],
    }


def _names(account: Account) -> list[str]:
    return [account.name, *(name for part in account.parts for name in _names(part))]


def running(account: Account) -> int:
    """Return how many workloads of a queue and its parts have nodes."""
    return len(account.holding) + sum(running(part) for part in account.parts)
