"""Admission: a workload gets nodes only where its queue may use them, and quota only with the
nodes.

What a workload asks for is known before it is placed but for what follows from its places: of which
models its GPUs are, how large a part of a card its shares take, which of its members are the first.
So the least of it is checked first, cheaply, and the search for places heeds what is left of the
rest (``headroom``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.packing.packing import Quota
from lockstep.scheduler.core.packing.quota_headroom import Headroom, affordable
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.search import Search, State
from lockstep.scheduler.core.quota.account import Account, Amounts, OverQuota
from lockstep.scheduler.core.scoring.feasibility import Fit, Fits, within
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray


def add_to(total: Amounts, more: Amounts, times: int = 1) -> None:
    """Add amounts, so many times, to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount * times


def asked(cluster: Cluster, problem: Problem) -> Amounts:
    """Return the least that the members which the workload needs count for, models left out.

    Where members of a group differ, each resource is taken from those that ask least of it.
    """
    if len(problem.items) == 1 == len(problem.needs):
        charged, number = cluster.ledger.charges(problem.items[0].shape), problem.needs[0].need
        return {name: amount * number for name, amount in charged.items()}
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


def spoken_for(
    cluster: Cluster, shapes: Mapping[str, PodShape], nodes: Mapping[str, str]
) -> Amounts:
    """Return what pods, by name, count for on the nodes that are kept for them."""
    total: Amounts = {}
    for pod, node in nodes.items():
        add_to(total, cluster.ledger.charged(shapes[pod], cluster.card(node)))
    return total


def limited(cluster: Cluster, workload: Workload) -> Account | None:
    """Return the account of a workload's queue where there are queues that may set limits."""
    return cluster.ledger.account(workload.queue) if cluster.ledger.specs else None


def over_quota(cluster: Cluster, workload: Workload, problem: Problem) -> OverQuota | None:
    """Return what keeps the workload from being admitted, however much room is free."""
    account = limited(cluster, workload)
    if account is None:
        return None
    return cluster.ledger.lacking(account, asked(cluster, problem), cluster.capacity())


def selective(cluster: Cluster, problem: Problem) -> bool:
    """Return whether the places that a workload may have depend on its queue's limits."""
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


def headrooms(cluster: Cluster, account: Account, problem: Problem) -> list[Headroom]:
    """Return what is left of the resources of which a workload may use too much by where it
    goes.
    """
    if not selective(cluster, problem):
        return []
    ledger, capacity = cluster.ledger, cluster.capacity()
    cards, own = cluster.offer.cards()
    charges = [[ledger.charged(item.shape, card) for card in cards] for item in problem.items]
    found = []
    for name in sorted({name for by_card in charges for one in by_card for name in one}):
        room = ledger.room(account, name, capacity)
        if room is None:
            continue
        costs = np.array([[one.get(name, 0) for one in by_card] for by_card in charges])
        dearest = [int(costs[number].max()) for number in range(len(problem.items))]
        most = sum(
            quota.want
            * max(
                (d for d, i in zip(dearest, problem.items, strict=True) if i.group == group),
                default=0,
            )
            for group, quota in enumerate(problem.needs)
        )
        if most > room:
            found.append(Headroom(name, room, costs[:, own]))
    return found


def place(
    cluster: Cluster,
    workload: Workload,
    problem: Problem,
    rows: BoolArray | None = None,
    *,
    state: State | None = None,
) -> Placement | None:
    """Return where the workload goes within its queue's limits, on some rows alone where given.

    None when it has no such place. *state* is the room as it would be; what counts against the
    limits is what is used now.
    """
    room = cluster if state is None else state
    account = limited(cluster, workload)
    if account is None:
        return _search(room, workload, problem, rows)
    if over_quota(cluster, workload, problem) is not None:
        return None
    problem = trimmed(cluster, account, problem)
    if not any(quota.want for quota in problem.needs):
        return None
    return _search(room, workload, problem, rows, headrooms(cluster, account, problem))


def _search(
    room: State,
    workload: Workload,
    problem: Problem,
    rows: BoolArray | None,
    headroom: Sequence[Headroom] = (),
) -> Placement | None:
    fits = None if rows is None else inside(problem, room.fits, rows)
    return _limited_search(room, problem, fits, headroom).place(workload.key)


def _limited_search(
    room: State, problem: Problem, fits: Sequence[Fit] | None, headroom: Sequence[Headroom]
) -> Search:
    """Return the search for places that do not use more than there is *headroom* for, or than the
    problem itself allows.
    """
    headroom = (*problem.headroom, *headroom)
    if not headroom:
        return Search(room, problem, fits)
    if fits is None:
        fits = [room.fits.of(item.shape, problem.strategy) for item in problem.items]
    left = [one.amount for one in headroom]
    open_to = (affordable(headroom, left, number) for number in range(len(problem.items)))
    fits = [within(fit, mask) for fit, mask in zip(fits, open_to, strict=True)]
    return Search(room, replace(problem, headroom=headroom), fits)


def search(
    cluster: Cluster, workload: Workload, problem: Problem, fits: Sequence[Fit] | None = None
) -> Search | None:
    """Return the search for a workload's place within its queue's limits, as if what it asks for
    fitted nodes as *fits* say; None where the queue may not use as much wherever that is.
    """
    account = limited(cluster, workload)
    if account is None:
        return Search(cluster, problem, fits)
    if over_quota(cluster, workload, problem) is not None:
        return None
    return _limited_search(cluster, problem, fits, headrooms(cluster, account, problem))


def in_the_way(cluster: Cluster, workload: Workload, problem: Problem) -> OverQuota | None:
    """Return which limit keeps a workload from a place where there would be room but for it.

    Of several that would do, each raised alone, the first; how much is short is the least that
    lets it in.
    """
    account = limited(cluster, workload)
    if account is None or over_quota(cluster, workload, problem) is not None:
        return None
    problem = problem.least
    known = headrooms(cluster, account, problem)
    if not known or _search(cluster, workload, problem, None, known) is not None:
        return None
    for number, one in enumerate(known):
        others = [*known[:number], *known[number + 1 :]]
        placement = _search(cluster, workload, problem, None, others)
        if placement is None:
            continue
        low, high = one.amount, counted(cluster, placement)[one.resource]
        step = int(np.gcd.reduce(one.costs[one.costs > 0]))
        while high - low > step:
            middle = (low + high) // 2
            wider = replace(one, amount=middle)
            placement = _search(cluster, workload, problem, None, [*others, wider])
            if placement is None:
                low = middle
            else:
                high = counted(cluster, placement)[one.resource]
        return cluster.ledger.lacking(account, {one.resource: high}, cluster.capacity())
    placement = _search(cluster, workload, problem, None)
    if placement is None:
        return None
    return cluster.ledger.lacking(account, counted(cluster, placement), cluster.capacity())


def inside(problem: Problem, fits: Fits, rows: BoolArray) -> Sequence[Fit]:
    """Return the fit vectors of a problem on some rows alone."""
    return [within(fits.of(item.shape, problem.strategy), rows) for item in problem.items]
