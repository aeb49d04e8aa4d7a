"""Past use of queues over restarts: what is shown of it, and what a new leader makes of that.

A reader goes by what the queue uses now, as if that had been so since it was written. So
it need not be written again for as long as the use stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.api import timestamp
from lockstep.api.queue import QueueStatus
from lockstep.scheduler.core.quota.account import Account, amounts_of, in_thousandths

TOLERANCE = 0.005
"""Part of the cluster by which what is shown may be off."""


def decayed(
    average: Mapping[str, float], used: Mapping[str, int], passed: float, half_life: float
) -> dict[str, float]:
    """Return an average *passed* seconds later, drawn towards what is used all that time."""
    kept = 0.5 ** (passed / half_life)
    return {
        name: average.get(name, 0.0) * kept + used.get(name, 0) * (1 - kept)
        for name in used.keys() | average.keys()
    }


def later(account: Account, passed: float) -> dict[str, float]:
    """Return an account's average *passed* seconds later, at the end of which something happened.

    What is used now may already be without what has just ended, so it is no measure of that time.
    """
    if account.half_life is None:
        return account.average
    return decayed(account.average, account.lasting, passed, account.half_life)


def recalled(status: QueueStatus, account: Account, now: float) -> dict[str, float]:
    """Return the average that follows from what a queue shows; empty where it shows none."""
    at = timestamp.read(status.average_at)
    if at is None or account.half_life is None:
        return {}
    try:
        shown = amounts_of(status.average_use)
    except ValueError:
        return {}  # another writer's value
    return decayed(shown, account.used, max(0.0, now - at), account.half_life)


def history(
    status: QueueStatus, account: Account, now: float, capacity: Mapping[str, int]
) -> dict[str, Any]:
    """Return what a queue should show of its past use: what it shows, as long as that will do."""
    if account.half_life is None:
        return {"averageUse": {}, "averageAt": None}
    there = recalled(status, account, now)
    if status.average_at is not None and not any(
        abs(account.average.get(name, 0.0) - there.get(name, 0.0)) > TOLERANCE * most
        for name, most in capacity.items()
    ):
        return {"averageUse": dict(status.average_use), "averageAt": status.average_at}
    return {
        "averageUse": {
            name: _quantity(name, account.average[name])
            for name in sorted(account.average)
            if account.average[name] >= 1
        },
        "averageAt": timestamp.show(now),
    }


def _quantity(resource: str, amount: float) -> str:
    return f"{round(amount)}m" if in_thousandths(resource) else str(round(amount))
