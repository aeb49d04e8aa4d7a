"""Why simulated jobs wait, and where that can be read when they give up."""

from __future__ import annotations

from msgspec.structs import replace

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.max_wait import deadline
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import Workload


def why(decider: Decider, workload: Workload) -> str:
    """Return in words why a job waits."""
    verdict = decider.broken.get(workload.key) or explain(decider.cluster, workload)
    return verdict.message or verdict.reason


def show_why(decider: Decider, moment: float, told: float | None) -> None:
    """Let gangs that give up by a Unix time show why they waited, as their statuses would.

    It is shown before anything happens at that time: what is freed then is too late for them.
    Until they are decided about, those whose time was over by *told*, a Unix time, have shown it.
    """
    for workload in decider.max_waits.due(decider.cluster, moment):
        end = deadline(workload)
        if workload.gang is not None and (told is None or end is None or end > told):
            status = replace(workload.gang.status, message=why(decider, workload))
            decider.cluster.set_gang(replace(workload.gang, status=status))
