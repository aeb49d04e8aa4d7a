"""Which pods must go so that a workload has a place, and which place that is.

Those that may go are put in the order of what losing them costs, and ``victim_search`` finds the
shortest beginning of it with which the workload fits. Of that beginning only those stay on the list
whose room the place found, or the queue's limit, does need; the dearest are spared first. Where
those that go leave more than is taken, it is tried whether the workload has another place without
the dearest of them. The plan is then placed once more, on the cluster without just these.

Other plans are compared with it by what they cost in the end (``chain``): budgets that are violated
first, then the work that is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.budgeted_victims import Victim, clean_sets, in_order
from lockstep.scheduler.core.preemption.chain import Chain, Draft, Effort, Price
from lockstep.scheduler.core.preemption.lost_work import lost_work
from lockstep.scheduler.core.preemption.reclaim_claims import Claim, claims
from lockstep.scheduler.core.preemption.reprieve import Reprieve
from lockstep.scheduler.core.preemption.victim_policy import Holder, VictimPolicy
from lockstep.scheduler.core.preemption.victim_search import VictimSearch
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import Budget
from lockstep.scheduler.core.util.array_types import BoolArray
from lockstep.scheduler.core.util.cheapest_first import cheapest_first

FEW_GANGS = 8
"""Gangs among which every choice of victims is tried, as far as the searches go."""
SEARCHES = 256
"""Searches for a place that comparing plans may take, the chains that follow included."""
SECOND_THOUGHTS = 8
"""Chunks of which it is tried whether the workload has another place without them.

Each takes a search, as does each halving of those that may go.
"""


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """These pods go, and the workload comes to stand there."""

    workload: WorkloadKey
    placement: Placement
    victims: tuple[Member, ...]
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow it, where nothing else makes room."""


class PreemptionPlanner:
    """Finds one workload's plan at one moment, as far as one claim of it goes."""

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        claim: Claim,
        *,
        leaving: Sequence[Member],
        now: float,
        gone: Sequence[Member] = (),
    ) -> None:
        """*gone* are pods that PodDisruptionBudgets miss already in a world that is supposed."""
        self._cluster = cluster
        self._workload = workload
        self._problem = claim.problem
        self._leaving = leaving
        self._gone = gone
        self._now = now
        self._account = cluster.ledger.account(workload.queue)
        priority, may = cluster.priorities.of(workload), cluster.priorities.may_preempt(workload)
        self.rights = VictimPolicy(cluster, self._account, priority, claim.asked, may)

    def find(self, rows: BoolArray | None = None) -> PreemptionPlan | None:
        """Return the plan, on some rows alone where they are given.

        None when it would fit with only those going that leave anyway, and when it would
        not even if all went whose place it may take.
        """
        state = WhatIf(self._cluster, self._leaving)
        if state.place(self._workload, self._problem, rows) is not None:
            return None
        best = self.draft(state, Effort(SEARCHES), rows)
        if best is None:
            return None
        return PreemptionPlan(self._workload.key, best.placement, best.members, best.broken)

    def draft(
        self, state: WhatIf, effort: Effort, rows: BoolArray | None = None, depth: int = 0
    ) -> Draft | None:
        """Return the plan that costs least in the end; what is supposed is as before.

        The plan of the cheapest victims is compared with others where there may be better ones:
        where it takes few gangs to try all choices, and where budgets forbid what is cheapest.
        """
        chunks = self._chunks()
        order = in_order(self._cluster.budgets, chunks, self._gone)
        plan = self._tried(state, order, rows)
        gangs = len({chunk.key for chunk in chunks})
        forbidden = any(chunk.violates for chunk in order)
        if plan is None or not (forbidden or 1 < gangs <= FEW_GANGS):
            return plan
        least = min(chunk.priority for chunk in chunks)
        found = _Cheapest(self, state, effort, depth, least)
        found.note(plan)
        if forbidden:
            for rival in self._rivals(state, plan, chunks, rows):
                found.note(rival)
        if gangs <= FEW_GANGS:
            self._try_all(state, found, chunks, rows)
        return found.plan

    def _rivals(
        self, state: WhatIf, plan: Draft, chunks: list[Victim], rows: BoolArray | None
    ) -> Iterator[Draft]:
        """Yield a plan that violates no budget, and that of the cheapest victims, budgets
        left aside.
        """
        if plan.broken:
            sets = clean_sets(self._cluster.budgets, chunks, self._gone)
            clean = (self._tried(state, one, rows) for one in sets)
            yield from islice((one for one in clean if one is not None), 1)
        cheap = self._tried(state, chunks, rows)
        if cheap is not None:
            yield self._judged(cheap.placement, cheap.victims)

    def _try_all(
        self, state: WhatIf, found: _Cheapest, chunks: list[Victim], rows: BoolArray | None
    ) -> None:
        """Try all choices of victims that may cost less, those that lose the least work first."""
        fitting: list[frozenset[PodKey]] = []
        present = state.mark()
        for lost, choice in cheapest_first(_options(chunks)):
            if found.beats(lost) or not found.effort.spend():
                return
            victims = tuple(chunk for option in choice for chunk in option.chunks)
            members = tuple(_members(victims))
            going = frozenset(member.key for member in members)
            if any(less <= going for less in fitting) or not self._allowed(state, victims):
                continue
            state.vacate(members)
            placement = state.place(self._workload, self._problem, rows)
            state.rollback(present)
            if placement is not None:
                fitting.append(going)
                found.note(self._judged(placement, victims))

    def _judged(self, placement: Placement, victims: Sequence[Victim]) -> Draft:
        """Return a plan with the budgets that just its victims violate."""
        clear = [replace(victim, violates=()) for victim in victims]
        return Draft(placement, tuple(in_order(self._cluster.budgets, clear, self._gone)))

    def price(self, state: WhatIf, plan: Draft, effort: Effort, depth: int, least: float) -> Price:
        """Return what a plan costs once no gang moves any more."""

        def planned(
            workload: Workload, problem: Problem, gone: Sequence[Member], depth: int
        ) -> Draft | None:
            for claim in claims(self._cluster, workload, problem):
                planner = PreemptionPlanner(
                    self._cluster, workload, claim, leaving=self._leaving, now=self._now, gone=gone
                )
                if not planner.rights.any():
                    continue
                found = planner.draft(state, effort, depth=depth)
                if found is not None:
                    return found
            return None

        chain = Chain(self._cluster, state, planned, self._gone)
        return chain.price(self._workload, plan, depth, least)

    def _tried(self, state: WhatIf, chunks: list[Victim], rows: BoolArray | None) -> Draft | None:
        """Return the plan in which a beginning of *chunks* goes; what is supposed is as before."""
        present = state.mark()
        found = self._among(state, chunks, rows)
        state.rollback(present)
        return found

    def _among(self, state: WhatIf, chunks: list[Victim], rows: BoolArray | None) -> Draft | None:
        """Return the plan in which a beginning of *chunks* goes; none of them has gone yet."""
        found = VictimSearch(
            state,
            (chunk.members for chunk in chunks),
            lambda: state.place(self._workload, self._problem, rows),
            lambda number: self._allowed(state, chunks[:number]),
        ).shortest()
        if found is None:
            return None
        number, placement = found
        kept, placement = self._needed(state, chunks[:number], placement, rows)
        return self._verified(state, kept, placement, chunks[:number])

    def _allowed(self, state: WhatIf, gone: Sequence[Victim]) -> bool:
        """Return whether no limit forbids the workload every place without these and the leaving.

        It is asked before anything is moved for a search that would end there.
        """
        with state.counted(gone=(*self._leaving, *_members(gone))):
            return admission.over_quota(self._cluster, self._workload, self._problem) is None

    def _lacking(self, state: WhatIf, placement: Placement) -> list[tuple[Account, str, int]]:
        """Return by queue and resource what must be given back before its ceilings are kept.

        What queues keep for themselves is no one's to use: the cluster counts as one more queue.
        """
        ledger, counted = self._cluster.ledger, admission.counted(self._cluster, placement)
        with state.counted(gone=self._leaving):
            passed = ledger.passed(self._account, counted, self._cluster.capacity())
            return [(over.account, over.resource, over.short) for over in passed]

    def _chunks(self) -> list[Victim]:
        """Return the pods that may go, the cheapest first."""
        spared = {member.key for member in self._leaving}
        found = []
        for holder in self.rights.victims(spared):
            if self._gone and any(self._cluster.pods.get(m.key) is not m for m in holder.members):
                continue  # it has just found its place in this world
            for member in holder.extras:
                found.append(self._chunk(holder, (member,), whole=False))
            if holder.core:
                found.append(self._chunk(holder, holder.core, whole=True))
        found.sort(key=lambda chunk: chunk.cost)
        return found

    def _chunk(self, holder: Holder, members: tuple[Member, ...], *, whole: bool) -> Victim:
        workload = self._cluster.workloads.get(holder.key)
        size = sum(m.shape.gpus or 1 for m in members)
        at_stake = 0.0
        if whole and holder.since:
            since, now = holder.since, self._now
            at_stake = (
                lost_work(workload, since, now) if workload is not None else max(0.0, now - since)
            )
        lost = at_stake * size
        # Spares of all gangs before members of any gang that work. Members of one gang that cost
        # the same stay in the order given: the last ones go first.
        works = any(member.key not in holder.spares for member in members)
        cost = (works, whole, holder.priority, lost, size, holder.key)
        return Victim(holder.key, holder.account, members, cost, whole, lost, holder.priority)

    def _needed(
        self,
        state: WhatIf,
        chunks: list[Victim],
        placement: Placement,
        rows: BoolArray | None,
    ) -> tuple[list[Victim], Placement]:
        """Return the chunks that must go and the place that takes it; the dearest are spared first.

        All of them are gone now.
        """
        slack = Reprieve(state.table, chunks, placement, self._lacking(state, placement))
        idle = _idle(state.table, placement)
        kept: list[Victim] = []
        whole: set[WorkloadKey] = set()
        thoughts = SECOND_THOUGHTS
        for number, chunk in reversed(list(enumerate(chunks))):
            if chunk.key not in whole and slack.spare(chunk):
                state.restore(chunk.members)
                idle -= chunk.gpus
                continue
            if chunk.key not in whole and thoughts and chunk.gpus <= idle:
                thoughts -= 1
                rest = [*chunks[:number], *kept]
                other = self._elsewhere(state, chunk, rest, rows)
                if other is not None:
                    placement = other
                    idle -= chunk.gpus
                    slack = Reprieve(state.table, rest, placement, self._lacking(state, placement))
                    continue
            kept.append(chunk)
            if chunk.whole:  # with the members that it could do without
                whole.add(chunk.key)
        return kept, placement

    def _elsewhere(
        self, state: WhatIf, chunk: Victim, rest: Sequence[Victim], rows: BoolArray | None
    ) -> Placement | None:
        """Return where the workload stands if just the *rest* goes, and have *chunk* back then."""
        if not self._allowed(state, rest):
            return None
        before = state.mark()
        state.restore(chunk.members)
        found = state.place(self._workload, self._problem, rows)
        if found is None:
            state.rollback(before)
        return found

    def _verified(
        self,
        state: WhatIf,
        kept: list[Victim],
        placement: Placement,
        chunks: list[Victim],
    ) -> Draft | None:
        """Return the plan once the workload has been placed where just the victims have gone.

        Just those that are *kept* on the list are gone now.
        """
        rows = np.zeros(self._cluster.table.capacity, dtype=bool)
        rows[[self._cluster.table.rows[a.spot.node] for a in placement.assignments]] = True
        for chosen in (kept, chunks):
            victims = tuple(_members(chosen))
            if chosen is chunks:
                state.vacate([m for m in victims if m.key not in state.gone])
            found = state.place(self._workload, self._problem, rows)
            if found is not None and victims:
                return Draft(found, tuple(chosen))
        return None


class _Cheapest:
    """The plan that costs least of those that were looked at; of equal ones the first."""

    def __init__(
        self, planner: PreemptionPlanner, state: WhatIf, effort: Effort, depth: int, least: float
    ) -> None:
        """*least* is the priority of the least important possible victim."""
        self.plan: Draft | None = None
        self.effort = effort
        self._planner, self._state, self._depth, self._least = planner, state, depth, least
        self._price: Price | None = None

    def note(self, plan: Draft) -> None:
        """Look at a plan."""
        price = self._planner.price(self._state, plan, self.effort, self._depth, self._least)
        if self._price is None or price < self._price:
            self.plan, self._price = plan, price

    def beats(self, lost: float) -> bool:
        """Return whether no plan that loses so much work at least can cost less."""
        best = self._price
        if best is None or best.broken or best.left_out > self._least:
            return False
        return best.lost <= lost


@dataclass(frozen=True, slots=True)
class _Option:
    """What may go of one gang: members that it can do without, or all of it."""

    key: WorkloadKey
    price: float
    chunks: tuple[Victim, ...]


def _options(chunks: Sequence[Victim]) -> list[_Option]:
    """Return all that may go of each gang, sorted by the work that is lost."""
    found, before = [], dict[WorkloadKey, tuple[Victim, ...]]()
    for chunk in sorted(chunks, key=lambda one: one.whole):
        going = before[chunk.key] = (*before.get(chunk.key, ()), chunk)
        found.append(_Option(chunk.key, sum(one.lost for one in going), going))
    return sorted(found, key=lambda one: one.price)


def _members(chunks: Sequence[Victim]) -> Iterator[Member]:
    return (member for chunk in chunks for member in chunk.members)


def _idle(table: NodeTable, placement: Placement) -> int:
    """Return how many GPUs are free at most once a workload stands where it is placed."""
    free = int(np.maximum(table.free[GPU_COLUMN, table.live], 0).sum())
    return free - sum(one.member.shape.gpus for one in placement.assignments)
