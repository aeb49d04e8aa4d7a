"""Fair share: who has how much beyond what it was promised, by its dominant resource."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.scheduler.core.queues.account import Account

Share = tuple[int, float, float]
"""Smaller goes first: 0 and how full the guaranteed amounts are, or 1 and the weighted excess;
then all that is used."""
NOTHING_DUE = float("inf")


def share(account: Account, capacity: Mapping[str, int]) -> Share:
    """Return where a queue stands among its siblings.

    Within its guaranteed amounts it goes before all that are beyond theirs. Beyond, the largest
    part of the cluster that it has of any resource counts, divided by the weight; where past use
    counts, the decayed average of use is added to the present one.
    """
    within, filled, excess, whole = any(account.guaranteed.values()), 0.0, 0.0, 0.0
    average = account.average
    for name in account.used.keys() | average.keys() if average else account.used:
        used = account.used.get(name, 0)
        most = capacity.get(name)
        if not most:
            continue
        promised = account.guaranteed.get(name, 0)
        if promised and used:
            filled = max(filled, used / promised)
            within = within and used < promised
        weighed = used + average[name] if name in average else used
        whole = max(whole, weighed / most)
        held = max(promised, used - account.over(name))
        excess = max(excess, (weighed - held) / most)
    if within:
        return 0, filled, whole
    if not account.weight:
        return 1, NOTHING_DUE if whole else 0.0, whole
    return 1, excess / account.weight, whole / account.weight
