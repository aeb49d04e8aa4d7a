"""What is said of queues: which limit binds, by how much, and what a queue holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lockstep.api import timestamp
from lockstep.api.label_syntax import value_problems
from lockstep.api.names import CPU, GPU, GPU_MODEL_LABEL, MEMORY, PODS
from lockstep.api.quantity import parse
from lockstep.api.queue import QueueSpec
from lockstep.api.wire import to_builtins
from lockstep.scheduler.core import words
from lockstep.scheduler.core.blocked import Verdict
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.kept_quota import promises
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.queues.account import (
    Account,
    Amounts,
    OverQuota,
    in_all,
    in_thousandths,
)
from lockstep.scheduler.core.queues.guarantee import MODEL_PREFIX
from lockstep.scheduler.core.queues.history import history
from lockstep.scheduler.core.queues.share import share
from lockstep.scheduler.core.units import Unit

OVER_QUOTA = "OverQuota"
_WITHOUT_DOMAIN = (CPU, MEMORY, "ephemeral-storage", PODS)
_FIELDS = {
    "limit": "of its limit",
    "borrowingLimit": "that it may have with its borrowingLimit",
}


def amount(resource: str, value: int) -> str:
    """Return an amount of an account in words: ``1.5 GPUs``, ``8 H100 GPUs``, ``16Gi memory``."""
    if resource == GPU or resource.startswith(MODEL_PREFIX):
        model = resource.removeprefix(MODEL_PREFIX) + " " if resource != GPU else ""
        return f"{value / 1000:g} {model}GPU{'' if value == 1000 else 's'}"
    return words.quantity(resource, value)


def quantity(resource: str, value: int) -> str | int:
    """Return an amount of an account as a quantity."""
    if in_thousandths(resource):
        return value // 1000 if value % 1000 == 0 else f"{value}m"
    if resource == MEMORY and value % 2**20 == 0:
        return f"{value // 2**20}Mi"
    return value


def quota_verdict(cluster: Cluster, unit: Unit, problem: Problem) -> Verdict | None:
    """Return which limit of which queue keeps the unit waiting; None when none does.

    Limits for which it matters where a pod goes, such as those of single models of GPUs, bind only
    where there would be room but for them.
    """
    over = admission.over_quota(cluster, unit, problem)
    if over is None:
        over = admission.in_the_way(cluster, unit, problem)
    if over is None:
        return None
    needs = words.listing([amount(n, v) for n, v in _first(admission.asked(cluster, problem))])
    short = amount(over.resource, over.short)
    kept = cluster.ledger.reserved.get(over.account.name, {}).get(over.resource, 0)
    used, most = amount(over.resource, over.used - kept), amount(over.resource, over.amount)
    if over.field == "lending":
        return Verdict(
            OVER_QUOTA,
            f"needs {needs}; the cluster has {most}, {used.partition(' ')[0]} of them in use or "
            f"kept by queues that do not lend them: {short} short",
            f"{short} given back, or lending by the queues that keep them",
        )
    queue = over.account.queue
    of = _FIELDS[over.field]
    return Verdict(
        OVER_QUOTA,
        f"needs {needs}; queue {queue} uses {used.partition(' ')[0]} of the {most} {of}: "
        f"{short} short" + _holders(cluster, over, unit) + _kept(cluster, over, unit),
        _remedy(over, admission.asked(cluster, problem), short),
    )


def _remedy(over: OverQuota, asked: Mapping[str, int], short: str) -> str:
    queue = over.account.queue
    raised = amount(over.resource, over.used + over.asked)
    if over.field == "borrowingLimit":
        promised = in_all(over.account.guaranteed, over.resource)
        raised = amount(over.resource, over.used + over.asked - promised)
    if over.asked > over.amount:
        # Nothing that is given back suffices; what it asks for itself may count for less above.
        left = asked.get(over.resource, over.asked) - over.short
        fewer = f"at most {amount(over.resource, left)} asked for, or " if left > 0 else ""
        return f"{fewer}a {over.field} of {raised} in queue {queue}"
    return f"{short} given back in queue {queue}, or a {over.field} of {raised} there"


def _holders(cluster: Cluster, over: OverQuota, unit: Unit) -> str:
    """Return who holds most of it in the queue; only the unit's own namespace is named."""
    held: dict[str, int] = {}
    for account in cluster.ledger.accounts.values():
        if over.account not in account.chain:
            continue
        for key, members in account.holding.items():
            total = sum(m.charged.get(over.resource, 0) for m in members.values())
            own = key.namespace == unit.key.namespace
            name = f"{key.kind.lower()} {key.name}" if own else "other namespaces"
            held[name] = held.get(name, 0) + total
    ranked = sorted(((n, v) for n, v in held.items() if v), key=lambda one: (-one[1], one[0]))
    parts = [f"{name} ({amount(over.resource, value)})" for name, value in ranked[:3]]
    if len(ranked) > 3:
        parts.append(f"others ({amount(over.resource, sum(v for _, v in ranked[3:]))})")
    return f"; held by {words.listing(parts)}" if parts else ""


def _kept(cluster: Cluster, over: OverQuota, unit: Unit) -> str:
    """Return when the unit itself has quota by promise, and for whom of those in line some of the
    limit is kept, with the names in its own namespace.
    """
    said, name = "", over.account.name
    for held in sorted(promises(cluster), key=lambda one: one.at):
        until = timestamp.show(held.at)
        given = held.given.get(name, {}).get(over.resource, 0)
        kept = held.asked.get(over.resource, 0) - given if name in held.given else 0
        if held.unit == unit.key:
            said += f"; by the run times stated enough is given back by {until}, and kept for it"
        elif kept > 0:
            own = held.unit.namespace == unit.key.namespace
            whom = f"{held.unit.kind.lower()} {held.unit.name}" if own else "another namespace"
            some = amount(over.resource, kept)
            said += f"; {some} kept for {whom} until {until} from what may run longer"
    return said


def _first(amounts: Mapping[str, int]) -> list[tuple[str, int]]:
    order = {GPU: 0, CPU: 1, MEMORY: 2}
    return sorted(amounts.items(), key=lambda one: (order.get(one[0], 3), one[0]))


def queue_status(cluster: Cluster, name: str, pending: Mapping[str, int]) -> dict[str, Any]:
    """Return what a queue should show of itself, but for when its conditions changed.

    *pending* counts the units that wait by the queue that they name.

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
    beyond, part, _ = share(account, cluster.capacity())
    usual = cluster.memory.kept(name, queue.status.usual, cluster.ledger.specs)
    remark = "; ".join((*unknown_resources(queue.spec), *beyond_limits(queue.spec)))
    return {
        "pending": sum(pending.get(one, 0) for one in _names(account)),
        "running": running(account),
        "used": {r: quantity(r, used[r]) for r in sorted(used)},
        "borrowed": {r: quantity(r, borrowed[r]) for r in sorted(borrowed)},
        "share": f"{100 * part:.1f}%" if beyond else "0.0%",
        **history(queue.status, account, cluster.ledger.aged or 0.0, cluster.capacity()),
        "usual": to_builtins(usual) if usual is not None else None,
        "observedGeneration": queue.metadata.generation,
        "conditions": [
            {
                "type": "Ready",
                "status": "False" if problem else "True",
                "reason": "Misplaced" if problem else "Ready",
                "message": "; ".join(filter(None, (problem, remark))),
            }
        ],
    }


def unknown_resources(spec: QueueSpec) -> Iterator[str]:
    """Say of each resource that a queue names and no pod can ever ask for what is wrong with it."""
    for field, amounts in (
        ("guaranteed", spec.guaranteed),
        ("limit", spec.limit),
        ("borrowingLimit", spec.borrowing_limit),
        ("lendingLimit", spec.lending_limit),
    ):
        for resource in amounts:
            if wrong := _never_asked_for(resource):
                yield f"its {field} names {resource}, which no pod can ask for: {wrong}"


def beyond_limits(spec: QueueSpec) -> Iterator[str]:
    """Say of each resource of which more is guaranteed to a queue than its limit lets it use."""
    for resource in sorted(spec.guaranteed.keys() & spec.limit.keys()):
        guaranteed, limit = spec.guaranteed[resource], spec.limit[resource]
        if parse(str(guaranteed)) > parse(str(limit)):
            yield (
                f"guarantees {guaranteed} {resource}, but its limit lets it use {limit}; "
                "raise the limit, or guarantee no more than it"
            )


def _never_asked_for(resource: str) -> str:
    if resource.startswith(MODEL_PREFIX):
        model = resource.removeprefix(MODEL_PREFIX)
        wrong = not model or value_problems(model)
        return f"no node can have the label {GPU_MODEL_LABEL} with {model!r}" if wrong else ""
    if "/" in resource or resource in _WITHOUT_DOMAIN or resource.startswith("hugepages-"):
        return ""
    return f"it has no domain before a slash, as {GPU} has"


def _names(account: Account) -> list[str]:
    return [account.name, *(name for part in account.parts for name in _names(part))]


def running(account: Account) -> int:
    """Return how many units of a queue and its parts have nodes."""
    return len(account.holding) + sum(running(part) for part in account.parts)
