"""Fair share: how much each account has beyond what it was promised, by its dominant resource."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.scheduler.core.quota.account import Account
from lockstep.scheduler.core.quota.guarantee import short

DominantShare = tuple[int, float, float]
"""Smaller goes first: 0 and how full the guaranteed amounts are, or 1 and the weighted excess;
then all that is used; of weight 0 after all others, by the excess alone."""
NOTHING_DUE = float("inf")
NOTHING_MORE: Mapping[str, int] = {}


def fair_turn(account: Account, capacity: Mapping[str, int]) -> DominantShare:
    """Return where a queue stands among its siblings with what it carries over from before."""
    beyond, part, whole = dominant_share(account, capacity)
    if not beyond:
        return beyond, part, whole
    if account.weight:
        return beyond, part + account.carried, whole
    return beyond, part, whole + account.carried


def dominant_share(
    account: Account, capacity: Mapping[str, int], more: Mapping[str, int] = NOTHING_MORE
) -> DominantShare:
    """Return where a queue stands among its siblings; were it to use *more*, where that is given.

    Within its guaranteed amounts it goes before all that are beyond theirs. Beyond, the largest
    part of the cluster that it has of any resource counts, divided by the weight; where past use
    counts, the decayed average of use is added to the present one.
    """
    within, filled, excess, whole = any(account.guaranteed.values()), 0.0, 0.0, 0.0
    average, held_now = account.average, account.used
    if more:
        names = held_now.keys() | more.keys()
        held_now = {name: held_now.get(name, 0) + more.get(name, 0) for name in names}
    for name in held_now.keys() | average.keys() if average else held_now:
        used = held_now.get(name, 0)
        most = capacity.get(name)
        if not most:
            continue
        promised = account.guaranteed.get(name, 0)
        if promised and used:
            filled = max(filled, used / promised)
            within = within and used < promised
        weighed = used + average[name] if name in average else used
        whole = max(whole, weighed / most)
        held = max(promised, used - short(account.guaranteed, held_now, name))
        excess = max(excess, (weighed - held) / most)
    if within:
        return 0, filled, whole
    if not account.weight:
        return 1, NOTHING_DUE, excess
    return 1, excess / account.weight, whole / account.weight


def largest_part(amounts: Mapping[str, int], capacity: Mapping[str, int]) -> float:
    """Return the largest part of the cluster that *amounts* are of any resource."""
    parts = (n / capacity[name] for name, n in amounts.items() if capacity.get(name))
    return max(parts, default=0.0)


def beyond(account: Account, capacity: Mapping[str, int]) -> float:
    """Return what part of the cluster an account has beyond what it is guaranteed, of the resource
    of which it has the largest; less than 0 where it has less than that of each.
    """
    promised = account.guaranteed
    return largest_part({r: n - promised.get(r, 0) for r, n in account.used.items()}, capacity)
