"""Which pods must go so that a workload has a place, and which place that is.

Those that may go are put in the order of what losing them costs, and ``victim_search`` finds the
shortest beginning of it with which the workload fits. Of that beginning only those stay on the list
whose room the place found, or the queue's limit, does need; the dearest are spared first. Where
those that go leave more than is taken, it is tried whether the workload has another place without
the dearest of them. The plan is then placed once more, on the cluster without just these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.preemption.budgeted_victims import Victim, clean_sets, in_order
from lockstep.scheduler.core.preemption.lost_work import lost_work
from lockstep.scheduler.core.preemption.reclaim_claims import Claim
from lockstep.scheduler.core.preemption.reprieve import Reprieve
from lockstep.scheduler.core.preemption.victim_policy import Holder, VictimPolicy
from lockstep.scheduler.core.preemption.victim_search import VictimSearch
from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.state.disruption_budgets import Budget
from lockstep.scheduler.core.util.array_types import BoolArray

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
    ) -> None:
        self._cluster = cluster
        self._workload = workload
        self._problem = claim.problem
        self._leaving = leaving
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
        present = state.mark()
        chunks = self._chunks()
        if not self._cluster.budgets:
            return self._among(state, chunks, rows)
        first = in_order(self._cluster.budgets, chunks)
        plan = self._among(state, first, rows)
        if plan is None or not plan.violates:
            return plan
        for clean in clean_sets(self._cluster.budgets, chunks):
            state.rollback(present)
            found = self._among(state, clean, rows)
            if found is not None:
                return found
        return plan

    def _among(
        self, state: WhatIf, chunks: list[Victim], rows: BoolArray | None
    ) -> PreemptionPlan | None:
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
        return Victim(holder.key, holder.account, members, cost, whole)

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
    ) -> PreemptionPlan | None:
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
                violated = dict.fromkeys(one for chunk in chosen for one in chunk.violates)
                return PreemptionPlan(self._workload.key, found, victims, tuple(violated))
        return None


def _members(chunks: Sequence[Victim]) -> Iterator[Member]:
    return (member for chunk in chunks for member in chunk.members)


def _idle(table: NodeTable, placement: Placement) -> int:
    """Return how many GPUs are free at most once a workload stands where it is placed."""
    free = int(np.maximum(table.free[GPU_COLUMN, table.live], 0).sum())
    return free - sum(one.member.shape.gpus for one in placement.assignments)
