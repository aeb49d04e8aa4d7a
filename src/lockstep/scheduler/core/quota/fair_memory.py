"""Fair share over time: how far queues that compete are ahead of their shares, or behind.

Shares of whole jobs come out even only over time: of three GPUs two queues have one or two. Each
queue keeps a lag: the time integral of how much more it has used than its weight gives it among
the siblings in which something waits too. Divided by the mean run time of a job that is so many
jobs, and they count as if they ran now, up to part of one: so the rounding goes the other way next
time, and no queue is further from its share than by a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.quota.dominant_share import beyond, largest_part

CARRIED = 0.6
"""Part of a job that a queue carries over at most: two queues are then apart by little more than
one job."""
FORGET = 256
"""Ends of workloads after which the older ones count half in the mean run time."""


class FairMemory:
    """The lags of the accounts."""

    def __init__(self) -> None:
        self.there = 0
        """Workloads that stand."""
        self._ended = 0.0
        self._busy = 0.0
        """Seconds for which workloads stood."""
        self._lagging: set[Account] = set()
        """Accounts with a lag, or whose lag changes."""

    def end(self) -> None:
        """Take note that a workload has lost its place."""
        self._ended += 1
        if self._ended > FORGET:
            self._ended, self._busy = self._ended / 2, self._busy / 2

    @property
    def runtime(self) -> float:
        """Return how many seconds a workload stands on average; at least one."""
        return max(1.0, self._busy / max(1.0, self._ended))

    def age(self, passed: float) -> None:
        """Let time pass: lags move, and those of queues in which nothing waits fade."""
        self._busy += self.there * passed
        for account in [*self._lagging]:
            if account.pace is None:
                account.lag *= 0.5 ** (passed / self.runtime)
                if abs(account.lag) < 1e-6 * self.runtime:
                    account.lag = 0.0
                    self._lagging.discard(account)
            else:
                account.lag += account.pace * passed
            at_most = CARRIED * account.job / (account.weight or 1)
            account.carried = max(-at_most, min(at_most, account.lag / self.runtime))

    def rest(self, contending: Iterable[Account], capacity: Mapping[str, int]) -> None:
        """Take note of what is used until anything happens, where something waits meanwhile."""
        for account in self._lagging:
            account.pace = None
        levels: dict[Account, set[Account]] = {}
        for leaf in contending:
            for one in leaf.chain:
                if one.parent is not None:
                    levels.setdefault(one.parent, set()).add(one)
        for parts in levels.values():
            if len(parts) > 1:
                self._compare(parts, capacity)

    def _compare(self, parts: set[Account], capacity: Mapping[str, int]) -> None:
        weighted = [one for one in parts if one.weight] or list(parts)
        uses = {one: beyond(one, capacity) for one in weighted}
        mean = sum(uses.values()) / sum((one.weight or 1) for one in weighted)
        jobs = {one: sum(len(leaf.holding) for leaf in one.leaves()) for one in weighted}
        most = max(1, sum(jobs.values()))
        typical = sum(largest_part(one.used, capacity) for one in weighted) / most
        for one, use in uses.items():
            one.pace = use / (one.weight or 1) - mean
            one.job = largest_part(one.used, capacity) / jobs[one] if jobs[one] else typical
            self._lagging.add(one)

    def rebuilt(self, accounts: Iterable[Account]) -> None:
        """Go on with accounts that were built anew and know of their lags."""
        there = list(accounts)
        self.there = sum(len(one.holding) for one in there)
        self._lagging = {one for one in there if one.lag}
