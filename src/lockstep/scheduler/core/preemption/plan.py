"""Which pods must go so that a unit has a place, and which place that is.

Those that may go are put in the order of what losing them costs. As more of them go the unit can
only fit better, so the shortest beginning of that order with which it fits is found by halving,
with the usual search on a supposition. Of that beginning only those stay on the list whose room the
place found, or the queue's limit, does need; the dearest are spared first. Where those that go
leave more than is taken, it is tried whether the unit has another place without the dearest of
them. The plan is then placed once more, on the cluster without just these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lockstep.scheduler.core.arrays import BoolArray
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.lost_work import lost_work
from lockstep.scheduler.core.placement import Placement
from lockstep.scheduler.core.preemption.budgets import Allowance, Budget
from lockstep.scheduler.core.preemption.chunks import Chunk
from lockstep.scheduler.core.preemption.claims import Claim
from lockstep.scheduler.core.preemption.rights import Holder, Rights
from lockstep.scheduler.core.preemption.slack import Slack
from lockstep.scheduler.core.preemption.supposition import Supposition
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.queues.account import Account
from lockstep.scheduler.core.units import Member, Unit, UnitKey

SECOND_THOUGHTS = 8
"""Chunks of which it is tried whether the unit has another place without them.

Each takes a search, as does each halving of those that may go.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """These pods go, and the unit comes to stand there."""

    unit: UnitKey
    placement: Placement
    victims: tuple[Member, ...]
    violates: tuple[Budget, ...] = ()
    """The PodDisruptionBudgets that do not allow it, where nothing else makes room."""


class Planner:
    """Finds one unit's plan at one moment, as far as one claim of it goes."""

    def __init__(
        self,
        cluster: Cluster,
        unit: Unit,
        claim: Claim,
        *,
        leaving: Sequence[Member],
        now: float,
    ) -> None:
        self._cluster = cluster
        self._unit = unit
        self._problem = claim.problem
        self._leaving = leaving
        self._now = now
        self._account = cluster.ledger.account(unit.queue)
        priority, may = cluster.priorities.of(unit), cluster.priorities.may_preempt(unit)
        self.rights = Rights(cluster, self._account, priority, claim.asked, may)

    def find(self, rows: BoolArray | None = None) -> Plan | None:
        """Return the plan, on some rows alone where they are given.

        None when it would fit without anybody going but those that leave anyway, and when it would
        not even if all went whose place it may take.
        """
        state = Supposition(self._cluster, self._leaving)
        if self._place(state, (), rows) is not None:
            return None
        chunks = self._chunks()
        state.vacate(_members(chunks))
        placement = self._place(state, chunks, rows)
        if placement is None:
            return None
        number, placement = self._halve(state, chunks, placement, rows)
        kept, placement = self._needed(state, chunks[:number], placement, rows)
        return self._verified(state, kept, placement, chunks[:number])

    def _place(
        self, state: Supposition, gone: Sequence[Chunk], rows: BoolArray | None
    ) -> Placement | None:
        """Return where the unit stands, within all limits, once these and who leaves have gone."""
        with self._cluster.ledger.without(self._uncounted(gone)):
            return admission.place(self._cluster, self._unit, self._problem, rows, state=state)

    def _allowed(self, gone: Sequence[Chunk]) -> bool:
        """Return whether no limit forbids the unit every place with these gone, and who leaves.

        It is asked before anything is moved for a search that would end there.
        """
        with self._cluster.ledger.without(self._uncounted(gone)):
            return admission.over_quota(self._cluster, self._unit, self._problem) is None

    def _uncounted(self, gone: Sequence[Chunk]) -> list[Member]:
        """Return those who leave and who is to go, as far as they count in any queue."""
        return [m for m in (*self._leaving, *_members(gone)) if m.account is not None]

    def _lacking(self, placement: Placement) -> list[tuple[Account, str, int]]:
        """Return by queue and resource what must be given back before its ceilings are kept.

        What queues keep for themselves is no one's to use: the cluster counts as one more queue.
        """
        ledger, counted = self._cluster.ledger, admission.counted(self._cluster, placement)
        with ledger.without(self._uncounted(())):
            passed = ledger.passed(self._account, counted, self._cluster.capacity())
            return [(over.account, over.resource, over.short) for over in passed]

    def _chunks(self) -> list[Chunk]:
        """Return who may go, the cheapest first."""
        spared = {member.key for member in self._leaving}
        found = []
        for holder in self.rights.victims(spared):
            for member in holder.extras:
                found.append(self._chunk(holder, (member,), whole=False))
            if holder.core:
                found.append(self._chunk(holder, holder.core, whole=True))
        found.sort(key=lambda chunk: chunk.cost)
        return self._within_budgets(found) if self._cluster.budgets else found

    def _within_budgets(self, chunks: list[Chunk]) -> list[Chunk]:
        """Put those last that a PodDisruptionBudget does not allow to go with those before."""
        allowance = Allowance(self._cluster.budgets)
        violated: dict[UnitKey, set[Budget]] = {}
        within, beyond = [], []
        for chunk in chunks:
            hit = {*allowance.spend(chunk.members), *violated.get(chunk.key, ())}
            if hit:  # a gang goes with the members that it can do without
                violated.setdefault(chunk.key, set()).update(hit)
                named = tuple(sorted(hit, key=lambda one: (one.namespace, one.name)))
                beyond.append(replace(chunk, violates=named))
            else:
                within.append(chunk)
        return within + beyond

    def _chunk(self, holder: Holder, members: tuple[Member, ...], *, whole: bool) -> Chunk:
        unit = self._cluster.units.get(holder.key)
        size = sum(m.shape.gpus or 1 for m in members)
        at_stake = 0.0
        if whole and holder.since:
            since, now = holder.since, self._now
            at_stake = lost_work(unit, since, now) if unit is not None else max(0.0, now - since)
        lost = at_stake * size
        # Members of one gang that cost the same stay in the order given: the last ones go first.
        cost = (whole, holder.priority, lost, size, holder.key)
        return Chunk(holder.key, holder.account, members, cost, whole)

    def _halve(
        self,
        state: Supposition,
        chunks: list[Chunk],
        placement: Placement,
        rows: BoolArray | None,
    ) -> tuple[int, Placement]:
        """Return the shortest beginning of *chunks* that suffices; all of them are gone now."""
        low, high, there = 0, len(chunks), len(chunks)
        while low < high:
            middle = (low + high) // 2
            found = None
            if self._allowed(chunks[:middle]):
                _move(state, chunks, there, middle)
                there = middle
                found = self._place(state, chunks[:middle], rows)
            if found is None:
                low = middle + 1
            else:
                high, placement = middle, found
        _move(state, chunks, there, high)
        return high, placement

    def _needed(
        self,
        state: Supposition,
        chunks: list[Chunk],
        placement: Placement,
        rows: BoolArray | None,
    ) -> tuple[list[Chunk], Placement]:
        """Return the chunks that must go and the place that takes it; the dearest are spared first.

        All of them are gone now.
        """
        slack = Slack(state.table, chunks, placement, self._lacking(placement))
        kept: list[Chunk] = []
        whole: set[UnitKey] = set()
        thoughts = SECOND_THOUGHTS
        for number, chunk in reversed(list(enumerate(chunks))):
            if chunk.key not in whole and slack.spare(chunk):
                state.restore(chunk.members)
                continue
            if chunk.key not in whole and thoughts and chunk.size <= slack.idle:
                thoughts -= 1
                rest = [*chunks[:number], *kept]
                other = self._elsewhere(state, chunk, rest, rows)
                if other is not None:
                    placement = other
                    slack = Slack(state.table, rest, placement, self._lacking(placement))
                    continue
            kept.append(chunk)
            if chunk.whole:  # with the members that it could do without
                whole.add(chunk.key)
        return kept, placement

    def _elsewhere(
        self, state: Supposition, chunk: Chunk, rest: Sequence[Chunk], rows: BoolArray | None
    ) -> Placement | None:
        """Return where the unit stands if just the *rest* goes, and have *chunk* back then."""
        if not self._allowed(rest):
            return None
        state.restore(chunk.members)
        found = self._place(state, rest, rows)
        if found is None:
            state.vacate(chunk.members)
        return found

    def _verified(
        self,
        state: Supposition,
        kept: list[Chunk],
        placement: Placement,
        chunks: list[Chunk],
    ) -> Plan | None:
        """Return the plan once the unit has been placed where just the victims have gone.

        Just those that are *kept* on the list are gone now.
        """
        rows = np.zeros(self._cluster.table.capacity, dtype=bool)
        rows[[self._cluster.table.rows[a.spot.node] for a in placement.assignments]] = True
        for chosen in (kept, chunks):
            victims = tuple(_members(chosen))
            if chosen is chunks:
                state.vacate([m for m in victims if m.key not in state.gone])
            found = self._place(state, chosen, rows)
            if found is not None and victims:
                violated = dict.fromkeys(one for chunk in chosen for one in chunk.violates)
                return Plan(self._unit.key, found, victims, tuple(violated))
        return None


def _members(chunks: Sequence[Chunk]) -> Iterator[Member]:
    return (member for chunk in chunks for member in chunk.members)


def _move(state: Supposition, chunks: Sequence[Chunk], there: int, number: int) -> None:
    """Have the first *number* of *chunks* gone instead of the first so many that were."""
    state.restore(_members(chunks[number:there]))
    state.vacate(_members(chunks[there:number]))
