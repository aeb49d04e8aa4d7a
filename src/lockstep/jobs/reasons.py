"""Why a job does not run: the one sentence in its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.api.training import TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs.roster import Roster

_NORMAL: Final = frozenset({"", "ContainerCreating", "PodInitializing"})


def message(
    status: TrainingJobStatus,
    roster: Roster,
    gang: Gang | None,
    warnings: Mapping[str, str],
    now: float,
) -> str:
    """Return what the job waits for, or nothing when it runs as it should."""
    if cond.holds(status, cond.RUNNING):
        return _replacing(status)
    restarting = cond.find(status, cond.RESTARTING)
    failed = restarting is not None and restarting.status == "True"
    after = f", after this: {restarting.message}" if restarting and failed else ""
    if roster.stale:
        return f"waits for {_names(roster.stale)} of the last attempt to end{after}"
    if roster.foreign:
        return f"waits for {_names(roster.foreign)} of another owner to be deleted"
    if status.retry_at and timestamp.parse(status.retry_at) > now:
        return f"starts again at {status.retry_at}{after}"
    if not cond.holds(status, cond.PLACED):
        return _unplaced(roster, gang) + after
    waits_for = _unstarted(roster, warnings)
    # Nothing but the ranks, which start within seconds.
    return waits_for or f"the ranks are about to start{after}"


def waits(pod: Pod) -> str:
    """Return why a container of a placed *pod* has not started, if its node says so."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in _NORMAL:
            said = f": {waiting.message}" if waiting.message else ""
            return f"{waiting.reason}{said}"
    return ""


def unstarted(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that have a node and do not run yet."""
    return [p for p in pods if p.spec.node_name and p.status.phase == "Pending"]


def _unplaced(roster: Roster, gang: Gang | None) -> str:
    if gang is not None and gang.status.message:
        return gang.status.message
    if missing := roster.missing():
        return f"{len(missing)} of {_pods(len(roster.wanted))} not created yet"
    for pod in roster.current.values():
        for condition in pod.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "False":
                return f"{pod.metadata.name}: {condition.message or condition.reason}"
    return f"waits for the scheduler to place {_pods(len(roster.wanted))}"


def _unstarted(roster: Roster, warnings: Mapping[str, str]) -> str:
    pending = unstarted(list(roster.current.values()))
    told = [(p, why) for p in pending if (why := waits(p) or warnings.get(p.metadata.name, ""))]
    if told:
        others = len(told) - 1
        more = f" (and {others} more)" if others else ""
        return f"{told[0][0].metadata.name}: {told[0][1]}{more}"
    if pending:
        return f"waits for {_names(pending)} to start"
    gone = [m.name for m in roster.missing()]
    return f"waits for {', '.join(gone[:3])} to be created again" if gone else ""


def _replacing(status: TrainingJobStatus) -> str:
    return f"replaces {', '.join(sorted(status.replacing))}" if status.replacing else ""


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _names(pods: Sequence[Pod]) -> str:
    shown = ", ".join(p.metadata.name for p in pods[:3])
    return shown if len(pods) <= 3 else f"{shown} and {len(pods) - 3} more"
