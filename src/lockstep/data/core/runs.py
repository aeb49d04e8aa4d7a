"""Runs of operations: when the next one falls due, and how one ends."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lockstep.api import cron, timestamp
from lockstep.compat.fluid.objects import Condition, DataLoad, DataProcess, OperationStatus

OVER = ("Complete", "Failed")
_YEARS = 3e8


def unserved(one: DataLoad | DataProcess) -> str:
    """Return why *one* cannot run by its schedule; empty when it can, or has none."""
    if not recurs(one):
        return ""
    try:
        cron.parse(one.spec.schedule)
    except cron.BadSchedule as error:
        return f"spec.schedule: {error}"
    return ""


def recurs(one: DataLoad | DataProcess) -> bool:
    """Tell whether *one* runs by the clock."""
    return one.spec.policy == "Cron"


def due(one: DataLoad | DataProcess) -> float:
    """Return when *one* falls due by its schedule (seconds since 1970); never is infinite."""
    if unserved(one):
        return float("inf")
    since = one.status.last_schedule_time or one.metadata.creation_timestamp or ""
    found = cron.parse(one.spec.schedule).after(timestamp.parse(since)) if since else None
    return float("inf") if found is None else found


def between(one: DataLoad | DataProcess, now: str) -> bool:
    """Tell whether *one* waits for its next time."""
    return recurs(one) and one.status.phase != "Executing" and due(one) > timestamp.parse(now)


def soonest(operations: Iterable[DataLoad | DataProcess], now: str) -> list[float]:
    """Return in how many seconds *operations* fall due by the clock."""
    found = (due(one) - timestamp.parse(now) for one in operations if recurs(one))
    return [one for one in found if one < _YEARS]


def begun(one: DataLoad | DataProcess, now: str, infos: dict[str, str]) -> OperationStatus:
    """Return the status of the run of *one* that begins."""
    return OperationStatus(
        phase="Executing",
        started_at=now,
        infos=infos,
        last_schedule_time=now if recurs(one) else "",
        last_successful_time=one.status.last_successful_time,
    )


def ended(
    before: OperationStatus, phase: str, reason: str, message: str, now: str
) -> OperationStatus:
    """Return the status of a run that was as *before* and is over."""
    started = before.started_at or now
    condition = Condition(
        type=phase,
        status="True",
        reason=reason,
        message=message,
        last_probe_time=now,
        last_transition_time=now,
    )
    good = phase == "Complete" and before.last_schedule_time
    return msgspec.structs.replace(
        before,
        phase=phase,
        duration=f"{max(0, round(timestamp.parse(now) - timestamp.parse(started)))}s",
        conditions=[condition],
        started_at=started,
        waiting_for={},
        last_successful_time=now if good else before.last_successful_time,
    )
