"""Whose turn it is: part by part of the tree of queues, what is guaranteed before what is borrowed.

A workload that takes the place of others because it is guaranteed is tried before they could have
taken that place themselves: no pod starts to be evicted at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import pairwise

from lockstep.scheduler.core.cycle.pending_queue import EquivalenceClass, PendingQueue, QueueHeap
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.preemption.reclaim_claims import on_models, unused
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.quota.dominant_share import DominantShare, fair_turn
from lockstep.scheduler.core.state.cluster import Cluster

Entry = tuple[int, DominantShare, str, int, Account]
"""Smaller goes first: by what is claimed, then by the share; the rest tells queues apart."""
CLAIMS, CLAIMS_LATER, CLAIMS_NOTHING = range(3)
"""The next workload claims what its queue is guaranteed; or one does that waits behind it."""


class QueueOrder:
    """The workloads to try: at each level of the tree from the queue whose turn it is."""

    def __init__(
        self, line: PendingQueue, cluster: Cluster, problem_of: Callable[[Workload], Problem | None]
    ) -> None:
        """*problem_of* says what a workload asks for; None where it is blocked by itself."""
        self._pending_queue = line
        self._cluster = cluster
        self._problem_of = problem_of
        self._top = cluster.ledger.top
        self._capacity = cluster.capacity()
        self._lanes: dict[Account, QueueHeap] = {}
        self._heaps: dict[Account, list[Entry]] = {}
        self._asks: dict[EquivalenceClass, Amounts] = {}
        for queue, lane in line.lanes.items():
            if lane.head(line.live) is not None:
                self._lanes[cluster.ledger.account(queue)] = lane
        if len(self._lanes) > 1:
            self._build(self._top, self._parts())

    def _parts(self) -> dict[Account, set[Account]]:
        """Return below each account those in which something waits."""
        parts: dict[Account, set[Account]] = {}
        for leaf in self._lanes:
            for account in leaf.chain:
                parts.setdefault(account.parent or self._top, set()).add(account)
        return parts

    def _build(self, above: Account, parts: dict[Account, set[Account]]) -> None:
        for account in parts[above]:
            if account in parts:
                self._build(account, parts)
        heap = self._heaps[above] = [self._entry(account) for account in parts[above]]
        heapify(heap)

    def _entry(self, account: Account) -> Entry:
        return (
            self._claim(account),
            fair_turn(account, self._capacity),
            account.name,
            id(account),
            account,
        )

    def _claim(self, account: Account) -> int:
        if not any(most > account.used.get(name, 0) for name, most in account.guaranteed.items()):
            return CLAIMS_NOTHING
        leaf = self._path(account)[-1]
        head = self._lanes[leaf].head(self._pending_queue.live)
        if head is not None and self._claims(account, *head):
            return CLAIMS
        below = [lane for leaf, lane in self._lanes.items() if account in leaf.chain]
        waiting = (first for lane in below for first in lane.firsts(self._pending_queue.live))
        later = any(self._claims(account, *one) for one in waiting)
        return CLAIMS_LATER if later else CLAIMS_NOTHING

    def _claims(self, account: Account, key: WorkloadKey, kind: EquivalenceClass) -> bool:
        """Return whether a queue may claim what a workload asks for, on the models where it may
        be.
        """
        claims, asked = self._cluster.ledger.claims, self._asked(key, kind)
        leaf = self._cluster.ledger.account(self._cluster.workloads[key].queue)
        if claims(account, asked, leaf):
            return True
        problem = self._problem_of(self._cluster.workloads[key]) if account.models() else None
        if problem is None:
            return False
        found = on_models(self._cluster, problem.least, unused(self._cluster, account))
        return found is not None and claims(account, found.asked, leaf)

    def _asked(self, key: WorkloadKey, kind: EquivalenceClass) -> Amounts:
        """Return the least that a workload asks for; others of its kind ask for as much."""
        found = self._asks.get(kind)
        if found is None:
            problem = self._problem_of(self._cluster.workloads[key])
            found = admission.asked(self._cluster, problem) if problem is not None else {}
            self._asks[kind] = found
        return found

    def _path(self, account: Account) -> list[Account]:
        """Return the accounts from one down to that whose turn it is."""
        path = [account]
        while path[-1] not in self._lanes:
            path.append(self._heaps[path[-1]][0][-1])
        return path

    def __iter__(self) -> Iterator[WorkloadKey]:
        """Yield the workloads to try; the caller shuts or updates each before the next."""
        if len(self._lanes) == 1:
            (lane,) = self._lanes.values()
            while found := lane.head(self._pending_queue.live):
                yield found[0]
            return
        while self._heaps.get(self._top):
            path = self._path(self._top)
            found = self._lanes[path[-1]].head(self._pending_queue.live)
            if found is not None:
                yield found[0]
            self._pass_on(path)

    def _pass_on(self, path: list[Account]) -> None:
        """Move the queue whose turn it was to where it belongs now."""
        for above, account in reversed(list(pairwise(path))):
            heap = self._heaps[above]
            lane = self._lanes.get(account)
            more = lane.head(self._pending_queue.live) if lane else self._heaps.get(account)
            if more:
                heapreplace(heap, self._entry(account))
            else:
                heappop(heap)
