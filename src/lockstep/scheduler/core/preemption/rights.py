"""Whose place a unit may take. The order behind it, which rules out cycles, is told in ADR 0053.

In its own queue a unit may take the place of what is less important. From other queues it may take
what they have beyond their guaranteed amounts, as long as its own stays within its. And no unit
that would be beyond a guaranteed amount takes the place of one within it. Of an elastic gang, the
members above its minimum are held by what a queue guarantees one by one, after all minimums.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.problem import Problem
from lockstep.scheduler.core.queues import admission
from lockstep.scheduler.core.queues.account import Account, Amounts
from lockstep.scheduler.core.units import Member, PodKey, Unit, UnitKey


@dataclass(frozen=True, slots=True)
class Holder:
    """A unit that has nodes in a queue."""

    key: UnitKey
    priority: int
    account: Account
    core: tuple[Member, ...]
    """The members without which it cannot run."""
    extras: tuple[Member, ...]
    """The members above the minimum of an elastic gang; the last ones go first."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Return all of its pods with nodes."""
        return self.core + self.extras

    @property
    def since(self) -> float:
        """Return since when it is there."""
        return min((m.since for m in self.members if m.since is not None), default=0.0)


def holders(cluster: Cluster, account: Account) -> Iterator[Holder]:
    """Yield the units that have nodes in a queue and its parts."""
    for leaf in account.leaves():
        for key, members in leaf.holding.items():
            unit = cluster.units.get(key) if key.kind == "Gang" else None
            extras = _extras(unit) if unit is not None else {}
            core = tuple(m for k, m in members.items() if k not in extras)
            spare = tuple(m for k, m in extras.items() if k in members)
            yield Holder(key, leaf.priorities[key], leaf, core, spare)


def _extras(unit: Unit) -> dict[PodKey, Member]:
    found: dict[PodKey, Member] = {}
    for muster in unit.musters:
        least = max(0, muster.group.minimum - muster.finished)
        found |= {m.key: m for m in reversed(muster.bound[least:])}
    return found


class _Secured(NamedTuple):
    """What the guaranteed amounts of a queue hold."""

    units: set[UnitKey]
    """Those whose minimum they hold."""
    members: set[PodKey]
    """Members of these above their minimum."""


class Rights:
    """What one unit may take, from whom."""

    def __init__(
        self, cluster: Cluster, account: Account, priority: int, asked: Amounts, may: bool
    ) -> None:
        self._cluster = cluster
        self._ledger = cluster.ledger
        self._account = account
        self._priority = priority
        self._asked = asked
        self._may = may and account.preempts
        self._secured: dict[Account, _Secured] = {}
        self.unsettled = False
        """Whether somebody was passed over because bindings of theirs are under way."""

    def any(self) -> bool:
        """Return, at little cost, whether there may be somebody to take from."""
        return self._own_lower() or any(True for _ in self._debtors())

    def _own_lower(self) -> bool:
        standing = self._account.standing
        return self._may and any(n and p < self._priority for p, n in standing.items())

    def guaranteed(self) -> bool:
        """Return whether the unit would be within what some queue around it guarantees."""
        return len(self._protecting()) < len(self._account.chain)

    def victims(self, spared: set[PodKey]) -> Iterator[Holder]:
        """Yield the units whose place may be taken; pods in *spared* are on their way out."""
        for holder, _ in self._all():
            left = [tuple(m for m in part if m.key not in spared) for part in _parts(holder)]
            if any(m.assumed for m in holder.members):
                self.unsettled = True
            elif any(left):
                yield Holder(holder.key, holder.priority, holder.account, *left)

    def _all(self) -> Iterator[tuple[Holder, Account]]:
        if self._own_lower():
            protecting = self._protecting()
            for holder in holders(self._cluster, self._account):
                if holder.priority < self._priority:
                    yield self._unsecured(holder, protecting), self._account
        for side in self._debtors():
            for holder in holders(self._cluster, side):
                yield self._unsecured(holder, self._below(holder, side)), side

    def _unsecured(self, holder: Holder, nodes: Iterable[Account]) -> Holder:
        """Return what none of these queues holds by its guaranteed amounts."""
        core, extras = holder.core, holder.extras
        for units, members in map(self._secured_in, nodes):
            core = () if holder.key in units else core
            extras = tuple(m for m in extras if m.key not in members)
        return replace(holder, core=core, extras=extras)

    def _debtors(self) -> Iterator[Account]:
        """Yield the parts of the tree from which the unit's side may claim its guaranteed share."""
        for side in self._account.chain:
            above = side.parent
            if above is None:
                continue
            if not self._ledger.claims(side, self._asked):
                continue
            contested = [r for r in side.managed() if self._asked.get(r)]
            for other in above.parts:
                if other is not side and any(other.over(r) for r in contested):
                    yield other

    def _below(self, holder: Holder, side: Account) -> Iterator[Account]:
        for node in holder.account.chain:
            yield node
            if node is side:
                return

    def _protecting(self) -> list[Account]:
        """Return the queues, innermost first, in whose guaranteed amounts the unit has no place."""
        found = []
        for node in self._account.chain:
            if self._would_be_secured(node):
                break
            found.append(node)
        return found

    def unsecured(self) -> int:
        """Return in how many queues, from its own outwards, the unit would not be secured before
        the first one in which it would be.
        """
        return len(self._protecting())

    def _would_be_secured(self, node: Account) -> bool:
        there = holders(self._cluster, node)
        left = self._left(node, [h for h in there if h.priority >= self._priority])
        return left is not None and _fits(self._asked, left)

    def secured(self, node: Account) -> set[UnitKey]:
        """Return the units in a queue that its guaranteed amounts hold, the most important first.

        One that does not fit any more is passed over, and does not keep others out.
        """
        return self._secured_in(node).units

    def _secured_in(self, node: Account) -> _Secured:
        found = self._secured.get(node)
        if found is None:
            found = self._secured[node] = _Secured(set(), set())
            self._left(node, list(holders(self._cluster, node)), found)
        return found

    def _left(
        self, node: Account, there: list[Holder], found: _Secured | None = None
    ) -> Amounts | None:
        managed = node.managed()
        left = {name: node.guaranteed.get(name, 0) for name in managed}
        if not any(left.values()):
            return None
        there.sort(key=lambda h: (-h.priority, h.since, h.key))
        within = [holder for holder in there if _take(holder.core, left)]
        if found is not None:
            found.units.update(holder.key for holder in within)
            extras = (m for holder in within for m in reversed(holder.extras))
            found.members.update(m.key for m in extras if _take((m,), left))
        return left


def claims_from(cluster: Cluster, unit: Unit, problem: Problem, queue: str) -> bool:
    """Return whether a unit would be within what is guaranteed on its side of where its queue and
    another one part.
    """
    if not cluster.ledger.active:
        return False
    account, other = cluster.ledger.account(unit.queue), cluster.ledger.account(queue)
    apart = [one for one in account.chain if one not in other.chain]
    if not any(one.guaranteed for one in apart):
        return False
    asked = admission.asked(cluster, problem)
    rights = Rights(cluster, account, cluster.priorities.of(unit), asked, may=True)
    return rights.unsecured() < len(apart)


def _parts(holder: Holder) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    return holder.core, holder.extras


def _take(members: Sequence[Member], left: Amounts) -> bool:
    """Return whether what members count for fits into what is *left*, and take it from there."""
    asked: Amounts = {}
    for member in members:
        for name, amount in member.charged.items():
            asked[name] = asked.get(name, 0) + amount
    if not _fits(asked, left):
        return False
    for name in left:
        left[name] -= asked.get(name, 0)
    return True


def _fits(asked: Amounts, left: Amounts) -> bool:
    relevant = [name for name in left if asked.get(name)]
    return bool(relevant) and all(asked[name] <= left[name] for name in relevant)
