"""When what counts in queues is given back, by the run times that are stated.

It is kept by what has moved in the accounts, so a decision looks at those workloads alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.quota.account import Account, Amounts
from lockstep.scheduler.core.reservations.reserved_nodes import GRACE, runtime_of
from lockstep.scheduler.core.state.cluster import Cluster

Back = tuple[float, Amounts]
"""Unix time at which some pods of a workload give back what they count for, and that. Minus
infinity: they are about to, or an earlier leader has known when."""


class LimitChange(NamedTuple):
    """What a workload gives back of an account by when, as it was and as it is now."""

    account: Account
    before: list[Back]
    after: list[Back]


class QuotaReleases:
    """By account and workload when what counts there is given back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._there: dict[str, dict[WorkloadKey, list[Back]]] = {}
        self._due: list[tuple[float, str, WorkloadKey]] = []
        """A heap of all ends to come, and of some that do not any more."""
        self._built = -1

    def update(self, now: float, touched: Iterable[WorkloadKey] = ()) -> list[LimitChange] | None:
        """Take in what has moved since; None where all accounts have been built anew.

        *touched*: workloads that may have changed how long they run.
        """
        ledger = self._cluster.ledger
        anew = self._built != ledger.built
        if anew:
            self._built, self._there, self._due = ledger.built, {}, []
            keys = {(name, key) for name, one in ledger.accounts.items() for key in one.holding}
        else:
            workloads = ((key, self._cluster.workloads.get(key)) for key in touched)
            timed = {(ledger.account(u.queue).name, key) for key, u in workloads if u is not None}
            keys = ledger.moved | timed | self._overdue(now)
        ledger.moved.clear()
        found = (self._note(name, key, now) for name, key in keys)
        moved = [one for one in found if one is not None]
        return None if anew else moved

    def _overdue(self, now: float) -> set[tuple[str, WorkloadKey]]:
        found = set()
        while self._due and self._due[0][0] + GRACE < now:
            _, name, key = heappop(self._due)
            found.add((name, key))
        return found

    def _note(self, name: str, key: WorkloadKey, now: float) -> LimitChange | None:
        there, account = self._there.setdefault(name, {}), self._cluster.ledger.accounts[name]
        before, after = there.pop(key, []), self._backs(account, key, now)
        if after:
            there[key] = after
        if before == after:
            return None
        for end, _ in after:
            if end > -inf:
                heappush(self._due, (end, name, key))
        return LimitChange(account, before, after)

    def _backs(self, account: Account, key: WorkloadKey, now: float) -> list[Back]:
        members = account.holding.get(key)
        if not members:
            return []
        runtime = runtime_of(self._cluster, next(iter(members.values())))
        found: dict[float, Amounts] = {}
        for member in members.values():
            stated = runtime if key.kind == "Gang" else member.runtime
            end = _counted_on(member, stated, now)
            if end is not None:
                total = found.setdefault(end, {})
                for name, amount in member.charged.items():
                    total[name] = total.get(name, 0) + amount
        return sorted(found.items(), key=lambda one: one[0])

    @property
    def next(self) -> float | None:
        """Return the next of the ends that are counted on."""
        while self._due:
            end, name, key = self._due[0]
            if any(end == one for one, _ in self._there.get(name, {}).get(key, ())):
                return end
            heappop(self._due)
        return None

    def of(self, account: Account | None) -> Iterator[tuple[str, Back]]:
        """Yield what is given back in an account and its parts, or (None) anywhere, each with the
        name of the account that it is counted in.
        """
        for name, workloads in self._there.items():
            if account is None or account in self._cluster.ledger.accounts[name].chain:
                for backs in workloads.values():
                    for back in backs:
                        yield name, back

    def by(self, account: Account, at: float, names: Iterable[str]) -> Amounts:
        """Return how much of some resources is given back in an account by a Unix time."""
        total = dict.fromkeys(names, 0)
        for _, (end, amounts) in self.of(account):
            if end <= at:
                for name in total:
                    total[name] += amounts.get(name, 0)
        return total


def _counted_on(member: Member, runtime: float | None, now: float) -> float | None:
    """Return when a pod gives back what it has; None where that is not to be counted on."""
    if member.terminating:
        return -inf
    if runtime is None:
        return None
    if member.since is None:
        return -inf
    end = member.since + runtime
    return end if now <= end + GRACE else None
