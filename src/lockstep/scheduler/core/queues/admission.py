"""Admission: a unit gets nodes only where its queue may use them, and quota only with the nodes.

What a unit asks for is known before it is placed but for the models of its GPUs. So the rest is
checked first, cheaply, and all of it again for the very places found. Where the GPUs of a model
are used up, the unit is placed on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lockstep.api.names import GPU_MODEL_LABEL
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.fit import Fit, Fits, within
from lockstep.scheduler.core.labels import BoolArray
from lockstep.scheduler.core.packing import Quota
from lockstep.scheduler.core.placement import Placement, Search, State
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues.account import MODEL_PREFIX, Account, Amounts
from lockstep.scheduler.core.queues.ledger import OverQuota
from lockstep.scheduler.core.units import Unit


def add_to(total: Amounts, more: Amounts, times: int = 1) -> None:
    """Add amounts, so many times, to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount * times


def asked(cluster: Cluster, problem: Problem) -> Amounts:
    """Return the least that the members which the unit needs count for, models left out.

    Where members of a group differ, each resource is taken from those that ask least of it.
    """
    total: Amounts = {}
    for group, quota in enumerate(problem.needs):
        charges = [
            (cluster.ledger.charges(item.shape), item.available)
            for item in problem.items
            if item.group == group
        ]
        if len(charges) == 1:
            add_to(total, charges[0][0], quota.need)
            continue
        for name in {name for charge, _ in charges for name in charge}:
            left = quota.need
            for amount, available in sorted((c.get(name, 0), number) for c, number in charges):
                total[name] = total.get(name, 0) + amount * min(left, available)
                left -= min(left, available)
    return total


def counted(cluster: Cluster, placement: Placement) -> Amounts:
    """Return what the pods of a placement count for where they go."""
    total: Amounts = {}
    for one in placement.assignments:
        add_to(total, cluster.ledger.charged(one.member.shape, cluster.card(one.spot.node)))
    return total


def limited(cluster: Cluster, unit: Unit) -> Account | None:
    """Return the account of a unit's queue where there are queues that may set limits."""
    return cluster.ledger.account(unit.queue) if cluster.ledger.specs else None


def over_quota(cluster: Cluster, unit: Unit, problem: Problem) -> OverQuota | None:
    """Return what keeps the unit from being admitted, whatever room there is."""
    account = limited(cluster, unit)
    if account is None:
        return None
    return cluster.ledger.lacking(account, asked(cluster, problem), cluster.capacity())


def selective(cluster: Cluster, problem: Problem) -> bool:
    """Return whether the places that a unit may have depend on its queue's limits."""
    if not cluster.ledger.specs:
        return False
    mixed = len(problem.items) > len(problem.needs)
    shares = any(item.shape.share is not None for item in problem.items)
    return problem.elastic or mixed or shares or cluster.ledger.by_model


def trimmed(cluster: Cluster, account: Account, problem: Problem) -> Problem:
    """Return the problem with no more members wanted than the queue may use."""
    if not problem.elastic:
        return problem
    total, needs = asked(cluster, problem), []
    for group, quota in enumerate(problem.needs):
        items = [item for item in problem.items if item.group == group]
        largest = max(items, key=lambda i: sorted(i.shape.request.values()), default=None)
        extra = 0
        while largest is not None and quota.need + extra < quota.want:
            more = dict(total)
            add_to(more, cluster.ledger.charges(largest.shape))
            if cluster.ledger.lacking(account, more, cluster.capacity()) is not None:
                break
            total, extra = more, extra + 1
        needs.append(Quota(quota.need, quota.need + extra))
    return problem if needs == problem.needs else replace(problem, needs=needs)


def place(
    cluster: Cluster,
    unit: Unit,
    problem: Problem,
    rows: BoolArray | None = None,
    *,
    state: State | None = None,
) -> Placement | None:
    """Return where the unit goes within its queue's limits, on some rows alone where given.

    None when it has no such place. *state* is the room as it would be; what counts against the
    limits is what is used now.
    """
    found = find(cluster, unit, problem, rows, state=state)
    return found if isinstance(found, Placement) else None


def find(
    cluster: Cluster,
    unit: Unit,
    problem: Problem,
    rows: BoolArray | None = None,
    *,
    state: State | None = None,
) -> Placement | OverQuota | None:
    """Return the unit's place as ``place`` does, or what limits it where there would be room."""
    room = cluster if state is None else state
    account = limited(cluster, unit)
    if account is None:
        fits = None if rows is None else inside(problem, room.fits, rows)
        return Search(room, problem, fits).place(unit.key)
    lacking = cluster.ledger.lacking(account, asked(cluster, problem), cluster.capacity())
    if lacking is not None:
        return lacking
    problem = trimmed(cluster, account, problem)
    if not any(quota.want for quota in problem.needs):
        return None
    closed: set[str] = set()
    limit: OverQuota | None = None
    while True:
        open_to = _without_models(cluster, closed, rows)
        fits = None if open_to is None else inside(problem, room.fits, open_to)
        placement = Search(room, problem, fits).place(unit.key)
        if placement is None:
            return limit
        over = cluster.ledger.lacking(account, counted(cluster, placement), cluster.capacity())
        if over is None:
            return placement
        limit = limit or over
        model = over.resource.removeprefix(MODEL_PREFIX)
        if model != over.resource and model not in closed:
            closed.add(model)
        elif problem.elastic:
            problem = replace(problem, needs=[Quota(q.need, q.need) for q in problem.needs])
        else:
            return limit


def _without_models(cluster: Cluster, closed: set[str], rows: BoolArray | None) -> BoolArray | None:
    """Return the rows whose GPUs are of no closed model; None where all are open."""
    if not closed:
        return rows
    open_to = ~cluster.table.label(GPU_MODEL_LABEL).any_of(sorted(closed))
    return open_to if rows is None else open_to & rows


def inside(problem: Problem, fits: Fits, rows: BoolArray) -> Sequence[Fit]:
    """Return the fit vectors of a problem on some rows alone."""
    return [within(fits.of(item.shape, problem.strategy), rows) for item in problem.items]
