"""Conditions of a job: set, read, and turned into events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.meta import Condition
from lockstep.api.roles import without_command
from lockstep.api.training import TrainingJob, TrainingJobStatus
from lockstep.runtime.actions import Note

CREATED: Final = "Created"
PLACED: Final = "Placed"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
HANGING: Final = "Hanging"
"""Ranks seem not to go on."""
STRAGGLING: Final = "Straggling"
"""A rank is slower than the others, step after step."""
LOSS_ABNORMAL: Final = "LossAbnormal"
"""The loss is no number, or stays far too high."""
CHECKPOINT_UNREADABLE: Final = "CheckpointUnreadable"
"""What is said of the last save is no time."""

_ORDER: Final = (
    CREATED,
    PLACED,
    RUNNING,
    RESTARTING,
    SUSPENDED,
    SUCCEEDED,
    FAILED,
    HANGING,
    STRAGGLING,
    LOSS_ABNORMAL,
    CHECKPOINT_UNREADABLE,
)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a condition is what it is: one word for programs, a sentence for people."""

    reason: str
    message: str = ""


def find(status: TrainingJobStatus, type_: str) -> Condition | None:
    """Return the condition of that type, if it was ever set."""
    return next((c for c in status.conditions if c.type == type_), None)


def holds(status: TrainingJobStatus, type_: str) -> bool:
    """Say whether the condition of that type is true."""
    condition = find(status, type_)
    return condition is not None and condition.status == "True"


def since(status: TrainingJobStatus, type_: str, value: bool) -> float | None:
    """Return since when the condition has been *value*, if it is."""
    condition = find(status, type_)
    if condition is None or (condition.status == "True") != value:
        return None
    return timestamp.parse(condition.last_transition_time)


def put(
    status: TrainingJobStatus, type_: str, value: bool, why: Why, now: float
) -> TrainingJobStatus:
    """Return *status* with the condition set; its time moves only when its value changes."""
    old = find(status, type_)
    said: Literal["True", "False"] = "True" if value else "False"
    changed = old is None or old.status != said
    new = Condition(
        type=type_,
        status=said,
        reason=why.reason,
        message=why.message,
        last_transition_time=timestamp.show(now)
        if changed or old is None
        else old.last_transition_time,
        observed_generation=status.observed_generation,
    )
    others = [c for c in status.conditions if c.type != type_]
    conditions = sorted([*others, new], key=lambda c: _ORDER.index(c.type))
    return structs.replace(status, conditions=conditions)


def clear(status: TrainingJobStatus, type_: str, why: Why, now: float) -> TrainingJobStatus:
    """Return *status* with a condition that was true made false; one never set stays unset."""
    if not holds(status, type_):
        return status
    return put(status, type_, False, why, now)


def drop(status: TrainingJobStatus, type_: str) -> TrainingJobStatus:
    """Return *status* without the condition, which means nothing for the time being."""
    return structs.replace(status, conditions=[c for c in status.conditions if c.type != type_])


OF_PODS: Final = ("PermanentError", "FailureRule", "RestartsUsedUp", "SameErrorTwice")
"""Reasons of a job's failure that follow from the end of a pod or a rank."""
_TOLD: Final = {
    PLACED: False,
    RUNNING: False,
    SUSPENDED: False,
    SUCCEEDED: False,
    FAILED: True,
    HANGING: True,
    STRAGGLING: True,
    LOSS_ABNORMAL: True,
    CHECKPOINT_UNREADABLE: True,
}


def unlaunched(job: TrainingJob) -> Iterator[Note]:
    """Yield, when the job is seen for the first time, why it has no launchers."""
    if job.status.queued_at is None and (roles := without_command(job)):
        text = (
            f"no launcher holds the ranks, for the role {roles[0]} has no command: pods restart "
            "together, and nothing is kept in memory (write the image's command into the "
            "template, or launcher: None)"
        )
        yield Note("NoLauncher", text)


def notes(old: TrainingJobStatus, new: TrainingJobStatus) -> tuple[Note, ...]:
    """Return the events that tell how *old* became *new*."""
    told: list[Note] = []
    if new.restarts > old.restarts and not holds(new, FAILED):
        told.append(Note("Restarting", _judged(_failure(new), new), warning=True))
    elif new.attempt > old.attempt and not holds(new, SUSPENDED):
        restarting = find(new, RESTARTING)
        word = restarting.reason if restarting is not None else ""
        told.append(Note("Resized" if word in ("", "Restarting") else word, new.message))
    if holds(old, SUSPENDED) and not holds(new, SUSPENDED):
        told.append(Note("Resumed", "the job waits for its place again"))
    for type_, warning in _TOLD.items():
        condition = find(new, type_)
        if condition is not None and holds(new, type_) and not holds(old, type_):
            text = condition.message
            if type_ == FAILED and condition.reason in OF_PODS:
                text = _judged(text, new)
            told.append(Note(type_, text, warning))
    created, before = find(new, CREATED), find(old, CREATED)
    refused = created is not None and created.status == "False" and created.message
    if created is not None and refused and (before is None or before.message != created.message):
        told.append(Note(created.reason, created.message, warning=True))
    return tuple(told)


def _judged(text: str, status: TrainingJobStatus) -> str:
    """Return *text* with the verdict on it, where there is one."""
    found = status.diagnosis
    if found is None or not found.confidence:
        return text
    return f"{text}; {found.class_}: {found.cause}"


def _failure(status: TrainingJobStatus) -> str:
    condition = find(status, RESTARTING)
    why = condition.message if condition else status.message
    return f"{why}; restart {status.restarts}"
