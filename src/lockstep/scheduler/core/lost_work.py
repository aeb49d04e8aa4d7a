"""What a unit loses with its place: the work that it has not saved."""

from __future__ import annotations

from math import inf

from lockstep.api import checkpoint, duration
from lockstep.scheduler.core.units import Unit


def last_saved(unit: Unit) -> float | None:
    """Return the Unix time at which the unit's work was last saved; None where nobody says so."""
    if unit.gang is None:
        return None
    return checkpoint.last(unit.gang.metadata.annotations, unit.gang.status.last_checkpoint)


def checkpointed(unit: Unit) -> bool:
    """Return whether the unit says that it saves its work, or when it did."""
    stated = unit.gang is not None and unit.gang.spec.checkpoint is not None
    return stated or last_saved(unit) is not None


def lost_work(unit: Unit, since: float, now: float) -> float:
    """Return the seconds of work that end with its place, which it has had *since*.

    That is the work since it was last saved; where nobody says when, at most what the unit promises
    to save within.
    """
    saved = last_saved(unit)
    if saved is not None:
        return max(0.0, now - max(saved, since))
    stated = unit.gang.spec.checkpoint if unit.gang is not None else None
    most = inf if stated is None or stated.interval is None else duration.parse(stated.interval)
    return min(max(0.0, now - since), most)
