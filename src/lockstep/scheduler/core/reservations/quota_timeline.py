"""What queues may use at later times, as far as one workload goes by it, by arithmetic alone."""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from operator import itemgetter

from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.quota.account import Amounts
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.reservations.quota_releases import Back, QuotaReleases
from lockstep.scheduler.core.reservations.reserved_quota import kept_in, needed
from lockstep.scheduler.core.state.cluster import Cluster


class QuotaTimeline:
    """The limits around a workload's queue when others have given back what they have, and
    promises are kept."""

    def __init__(
        self, cluster: Cluster, back: QuotaReleases, workload: Workload, now: float
    ) -> None:
        self._cluster, self._workload = cluster, workload
        self._runs = inf if workload.runtime is None else workload.runtime
        self._chain = cluster.ledger.account(workload.queue).chain
        self._others = [held for held in cluster.reservations if held.workload != workload.key]
        # What others lend depends on what each of them uses.
        bounds = None if cluster.ledger.keeps else self._chain[-1]
        found: dict[str, list[Back]] = {}
        for name, one in back.of(bounds):
            found.setdefault(name, []).append(one)
        self._ends: dict[str, list[float]] = {}
        self._sums: dict[str, list[Amounts]] = {}
        """By account what its own pods give back in all by each of those ends."""
        for name, backs in found.items():
            backs.sort(key=itemgetter(0))
            self._ends[name] = [end for end, _ in backs]
            self._sums[name] = sums = []
            total: Amounts = {}
            for _, amounts in backs:
                total = total | {r: total.get(r, 0) + n for r, n in amounts.items()}
                sums.append(total)
        times = {end for ends in self._ends.values() for end in ends}
        times |= {held.until for held in self._others}
        self.times = sorted(time for time in times if now < time < inf)
        """When anything is given back that counts."""

    def _given(self, at: float) -> dict[str, Amounts]:
        """Return by account what its own pods have given back by a Unix time."""
        many = {name: bisect_right(ends, at) for name, ends in self._ends.items()}
        return {name: self._sums[name][n - 1] for name, n in many.items() if n}

    def _around(self, given: dict[str, Amounts]) -> dict[str, Amounts]:
        """Return the same for the workload's queue and those around it, their parts included."""
        found: dict[str, Amounts] = {account.name: {} for account in self._chain}
        for name, amounts in given.items():
            for account in self._cluster.ledger.accounts[name].chain:
                total = found.get(account.name)
                if total is not None:
                    for resource, amount in amounts.items():
                        total[resource] = total.get(resource, 0) + amount
        return found

    def _kept(self, around: dict[str, Amounts], at: float) -> dict[str, Amounts]:
        end = at + self._runs
        accounts = [account.name for account in self._chain]
        return needed(
            self._cluster, self._others, start=at, end=end, gone=around, accounts=accounts
        )

    def first(self, asked: Amounts, now: float) -> float | None:
        """Return the first time, by halving, at which no limit of which anything can be kept is
        lacking; None where that is never so.
        """
        times = [now, *self.times]
        if not self._allows(asked, times[-1]):
            return None
        low, high = 0, len(times) - 1
        while low < high:
            middle = (low + high) // 2
            if self._allows(asked, times[middle]):
                high = middle
            else:
                low = middle + 1
        return times[high]

    def _allows(self, asked: Amounts, at: float) -> bool:
        ledger, around = self._cluster.ledger, self._around(self._given(at))
        kept = self._kept(around, at)
        for account, names in kept_in(self._cluster, self._workload.queue, asked).items():
            for name in names:
                had = account.claimed.get(name, 0) - around[account.name].get(name, 0)
                had += ledger.promised(account, name) + kept[account.name].get(name, 0)
                if had + asked[name] > account.ceilings[name].amount:
                    return False
        return True

    def then(self, at: float) -> Supposed:
        """Suppose of quota that it is as it will be at a Unix time."""
        given, quota = self._given(at), Supposed(self._cluster.ledger)
        quota.reserve(self._kept(self._around(given), at))
        quota.give_back(given)
        return quota
