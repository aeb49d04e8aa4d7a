"""Why simulated jobs wait, and where that can be read when they give up."""

from __future__ import annotations

from msgspec.structs import replace

from lockstep.scheduler.core.decide import Decider
from lockstep.scheduler.core.explain import explain
from lockstep.scheduler.core.timeouts import deadline
from lockstep.scheduler.core.units import Unit


def why(decider: Decider, unit: Unit) -> str:
    """Return in words why a job waits."""
    verdict = decider.broken.get(unit.key) or explain(decider.cluster, unit)
    return verdict.message or verdict.reason


def show_why(decider: Decider, moment: float, told: float | None) -> None:
    """Let gangs that give up by a Unix time show why they waited, as their statuses would.

    It is shown before anything happens at that time: what is freed then is too late for them.
    Until they are decided about, those whose time was over by *told*, a Unix time, have shown it.
    """
    for unit in decider.timeouts.due(decider.cluster, moment):
        end = deadline(unit)
        if unit.gang is not None and (told is None or end is None or end > told):
            status = replace(unit.gang.status, message=why(decider, unit))
            decider.cluster.set_gang(replace(unit.gang, status=status))
