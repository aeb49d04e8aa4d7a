"""Whose place a workload may take. The order behind it, which rules out cycles, is told in ADR
0053.

In its own queue a workload may take the place of what is less important. From other queues it may
take what they have beyond their guaranteed amounts, as long as its own stays within its. And no
workload that would be beyond a guaranteed amount takes the place of one within it. Of an elastic
gang, the members above its minimum are held by what a queue guarantees one by one, after all
minimums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.guarantee import bears_on, holds
from lockstep.scheduler.core.state.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Holder:
    """A workload that has nodes in a queue."""

    key: WorkloadKey
    priority: int
    account: Account
    core: tuple[Member, ...]
    """The members without which it cannot run."""
    extras: tuple[Member, ...]
    """The members above the minimum of an elastic gang; the last ones go first."""
    spares: frozenset[PodKey] = frozenset()
    """Those of them that do no work."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Return all of its pods with nodes."""
        return self.core + self.extras

    @property
    def since(self) -> float:
        """Return since when it is there."""
        return min((m.since for m in self.members if m.since is not None), default=0.0)


def holders(cluster: Cluster, account: Account) -> Iterator[Holder]:
    """Yield the workloads that have nodes in a queue and its parts."""
    for leaf in account.leaves():
        for key, members in leaf.holding.items():
            workload = cluster.workloads.get(key) if key.kind == "Gang" else None
            extras = _extras(workload) if workload is not None else {}
            core = tuple(m for k, m in members.items() if k not in extras)
            spare = tuple(m for k, m in extras.items() if k in members)
            idle = _standing_by(workload) if spare and workload is not None else frozenset[PodKey]()
            yield Holder(key, leaf.priorities[key], leaf, core, spare, idle)


def _extras(workload: Workload) -> dict[PodKey, Member]:
    found: dict[PodKey, Member] = {}
    for pod_group in workload.pod_groups:
        least = max(0, pod_group.group.minimum - pod_group.finished)
        found |= {m.key: m for m in reversed(pod_group.bound[least:])}
    return found


def _standing_by(workload: Workload) -> frozenset[PodKey]:
    return frozenset(m.key for group in workload.pod_groups for m in group.standing_by)


class _Secured(NamedTuple):
    """What the guaranteed amounts of a queue hold."""

    workloads: set[WorkloadKey]
    """Those whose minimum they hold."""
    members: set[PodKey]
    """Members of these above their minimum."""


class VictimPolicy:
    """What one workload may take, and from which others."""

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
        """Whether a workload was passed over because its bindings are under way."""

    def any(self) -> bool:
        """Return, at little cost, whether there may be a workload to take from."""
        return self._own_lower() or any(True for _ in self._debtors())

    def _own_lower(self) -> bool:
        standing = self._account.standing
        return self._may and any(n and p < self._priority for p, n in standing.items())

    def guaranteed(self) -> bool:
        """Return whether the workload would be within what some queue around it guarantees."""
        return len(self._protecting()) < len(self._account.chain)

    def victims(self, spared: set[PodKey]) -> Iterator[Holder]:
        """Yield the workloads whose place may be taken; pods in *spared* are on their way out."""
        for holder, _ in self._all():
            left = [tuple(m for m in part if m.key not in spared) for part in _parts(holder)]
            if any(m.assumed and not m.tentative for m in holder.members):
                self.unsettled = True
            elif any(left):
                yield replace(holder, core=left[0], extras=left[1])

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
        for workloads, members in map(self._secured_in, nodes):
            core = () if holder.key in workloads else core
            extras = tuple(m for m in extras if m.key not in members)
        return replace(holder, core=core, extras=extras)

    def _debtors(self) -> Iterator[Account]:
        """Yield the parts of the tree from which the workload's side may claim its guaranteed
        share.
        """
        for side in self._account.chain:
            above = side.parent
            if above is None:
                continue
            if not self._ledger.claims(side, self._asked, self._account):
                continue
            contested = [r for r in side.managed if self._asked.get(r)]
            for other in above.parts:
                if other is not side and any(other.over_claimed(r) for r in contested):
                    yield other

    def _below(self, holder: Holder, side: Account) -> Iterator[Account]:
        for node in holder.account.chain:
            yield node
            if node is side:
                return

    def _protecting(self) -> list[Account]:
        """Return the queues, innermost first, in whose guaranteed amounts the workload has no
        place.
        """
        found = []
        for node in self._account.chain:
            if self._would_be_secured(node):
                break
            found.append(node)
        return found

    def unsecured(self) -> int:
        """Return in how many queues, from its own outwards, the workload would not be secured
        before the first one in which it would be.
        """
        return len(self._protecting())

    def _would_be_secured(self, node: Account) -> bool:
        contested = node.managed
        if not any(node.guaranteed.get(name) for name in contested):
            return False
        taken = taken_before(self._cluster, node, self._priority)
        asked = self._asked
        if self._ledger.keeps:
            asked = self._ledger.felt(node, asked, self._account)
        within = holds(node.guaranteed, taken, asked, contested)
        return within and bears_on(self._asked, contested)

    def secured(self, node: Account) -> set[WorkloadKey]:
        """Return the workloads in a queue that its guaranteed amounts hold, the most important
        first.

        One that does not fit any more is passed over, and does not keep others out.
        """
        return self._secured_in(node).workloads

    def _secured_in(self, node: Account) -> _Secured:
        found = self._secured.get(node)
        if found is None:
            hold = _Hold(node)
            within = hold.minimums(holders(self._cluster, node))
            extras = (m for holder in within for m in reversed(holder.extras))
            members = {m.key for m in extras if hold.take((m,))}
            found = self._secured[node] = _Secured({holder.key for holder in within}, members)
        return found


class _Hold:
    """What the guaranteed amounts of one queue hold, taken step by step."""

    def __init__(self, node: Account) -> None:
        self._guaranteed = node.guaranteed
        self._contested = node.managed if any(node.guaranteed.values()) else set[str]()
        # What parts keep for themselves is theirs before any other's in this queue.
        self.taken: Amounts = {name: node.idle(name) for name in self._contested}

    def minimums(self, there: Iterable[Holder]) -> list[Holder]:
        """Hold of these workloads what they cannot do without; return those of which it is held."""
        if not self._contested:
            return []
        order = sorted(there, key=lambda h: (-h.priority, h.since, h.key))
        return [holder for holder in order if self.take(holder.core)]

    def take(self, members: Sequence[Member]) -> bool:
        """Hold what these members count for, if that fits beside what is held; return whether."""
        asked: Amounts = {}
        for member in members:
            for name, amount in member.charged.items():
                asked[name] = asked.get(name, 0) + amount
        if not holds(self._guaranteed, self.taken, asked, self._contested):
            return False
        for name in self._contested:
            self.taken[name] = self.taken.get(name, 0) + asked.get(name, 0)
        return True


def taken_before(cluster: Cluster, node: Account, priority: int) -> Amounts:
    """Return what a queue's guaranteed amounts hold of workloads that are as important, or more
    so.
    """
    hold = _Hold(node)
    hold.minimums(h for h in holders(cluster, node) if h.priority >= priority)
    return hold.taken


def _parts(holder: Holder) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
    return holder.core, holder.extras
