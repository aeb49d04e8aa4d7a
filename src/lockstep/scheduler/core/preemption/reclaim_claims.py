"""What a workload may claim of guaranteed amounts: wherever it goes, and on models guaranteed to
it.

What a workload counts for of single models follows from its place. So a claim on these is a problem
with limits of its own: no more GPUs of each model than its guarantee still has, and none of others.
A place found for that problem is within the claim, however it divides the members between models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from lockstep.api.names import GPU
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.packing.quota_headroom import Division, Headroom, parts_of
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.victim_policy import VictimPolicy, taken_before
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.guarantee import MODEL_PREFIX
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.array_types import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class Claim:
    """What a workload claims, and what it asks for then."""

    asked: Amounts
    """What it counts for; of single models of GPUs the most that go to each."""
    problem: Problem


def claims(cluster: Cluster, workload: Workload, problem: Problem) -> Iterator[Claim]:
    """Yield what a workload may claim: wherever it goes first, then on models guaranteed to it.

    In each queue around it these are the models guaranteed there, up to what is unused, and up to
    what no more important workload holds; at last up to the least of all these.
    """
    yield Claim(admission.asked(cluster, problem), problem)
    if not cluster.ledger.by_model:
        return
    account, priority = cluster.ledger.account(workload.queue), cluster.priorities.of(workload)
    rooms: list[Amounts] = []
    for one in account.chain:
        if models := one.models():
            rooms.append(unused(cluster, one))
            taken = taken_before(cluster, one, priority)
            rooms.append({m: one.guaranteed[m] - taken.get(m, 0) for m in models})
    if rooms:
        rooms.append({m: min(r.get(m, 0) for r in rooms) for m in rooms[0]})
    seen: list[Amounts] = []
    for room in rooms:
        found = on_models(cluster, problem, room)
        if found is not None and found.asked not in seen:
            seen.append(found.asked)
            yield found


def unused(cluster: Cluster, account: Account) -> Amounts:
    """Return what is left of what a queue is guaranteed of single models."""
    models = account.models()
    used = cluster.ledger.spoken_for(account, models)
    return {model: account.guaranteed[model] - used[model] for model in models}


def on_models(cluster: Cluster, problem: Problem, room: Mapping[str, int]) -> Claim | None:
    """Return the claim on models of which there is so much room; None where the members that the
    workload needs cannot be divided between them.
    """
    asked = admission.asked(cluster, problem)
    if not asked.get(GPU):
        return None
    cards, own = cluster.offer.cards()
    costs = np.array(
        [
            [cluster.ledger.charged(item.shape, card).get(GPU, 0) for card in cards]
            for item in problem.items
        ]
    )
    names = np.array([f"{MODEL_PREFIX}{card.model}" for card in cards])
    most = _most(problem, costs)
    open_to = {model: min(most, amount) for model, amount in room.items() if amount > 0}
    limits = [
        Headroom(model, amount, np.where(names == model, costs, 0))
        for model, amount in sorted(open_to.items())
    ]
    limits.append(Headroom(GPU, 0, np.where(np.isin(names, list(open_to)), 0, costs)))
    if not _divides(cluster, problem, limits, own):
        return None
    headroom = [replace(one, costs=one.costs[:, own]) for one in limits]
    return Claim({**asked, **open_to}, replace(problem, headroom=headroom))


def _most(problem: Problem, costs: IntArray) -> int:
    """Return the most GPUs, in thousandths, that the members which the workload needs count for."""
    total = 0
    for group, quota in enumerate(problem.needs):
        rows = [number for number, item in enumerate(problem.items) if item.group == group]
        total += quota.need * int(costs[rows].max(initial=0))
    return total


def _divides(cluster: Cluster, problem: Problem, limits: list[Headroom], own: IntArray) -> bool:
    """Return whether the members can be divided between kinds of cards, free or in use.

    The limits are by kind of card; *own* is the kind by row of the nodes.
    """
    eligible: list[BoolArray] = []
    for item in problem.items:
        kinds = np.zeros(limits[0].costs.shape[1], dtype=bool)
        kinds[own[cluster.fits.of(item.shape, problem.strategy).eligible]] = True
        eligible.append(kinds)
    parts = parts_of([(i.group, i.available) for i in problem.items], eligible, limits)
    division = Division(
        parts,
        [item.available for item in problem.items],
        [quota.need for quota in problem.needs],
        [one.amount for one in limits],
    )
    return division.within([part.most for part in parts]) is not None


def claims_from(cluster: Cluster, workload: Workload, problem: Problem, queue: str) -> bool:
    """Return whether a workload would be within what is guaranteed on its side of where its
    queue and another one part.
    """
    if not cluster.ledger.active:
        return False
    account, other = cluster.ledger.account(workload.queue), cluster.ledger.account(queue)
    apart = [one for one in account.chain if one not in other.chain]
    if not any(one.guaranteed for one in apart):
        return False
    priority = cluster.priorities.of(workload)
    return any(
        VictimPolicy(cluster, account, priority, claim.asked, may=True).unsecured() < len(apart)
        for claim in claims(cluster, workload, problem)
    )
