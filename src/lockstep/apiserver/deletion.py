"""What deleting an object means: gone at once, marked for its finalizers, or given time to end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.builtin.traits import ORPHANING, UNOWNED
from lockstep.apiserver.clock import seconds, timestamp
from lockstep.apiserver.status import qualified

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Deletion:
    """What ``DeleteOptions`` ask for."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""


class Outcome(Enum):
    """What becomes of an object that is deleted."""

    GONE = "gone"
    """It goes, as it was."""
    ENDED = "ended"
    """It is marked first, so that watchers see why, and goes with that."""
    MARKED = "marked"
    """It stays until something else is done."""


def plan_deletion(kind: Kind, obj: Json, deletion: Deletion, now: float) -> Outcome:
    """Mark *obj* for deletion as far as it is to be marked; say what becomes of it."""
    meta = obj["metadata"]
    is_pod = not kind.group and kind.kind == "Pod"
    if is_pod and meta.get("deletionTimestamp") and meta.get("deletionGracePeriodSeconds"):
        return _hurry(meta, deletion, now)
    if is_pod and not meta.get("deletionTimestamp"):
        _mark(meta, _grace(obj, deletion), now)
    _set_propagation(meta, _finalizers(kind, meta, deletion))
    if is_held(obj):
        _hold(obj, now)
        return Outcome.MARKED
    if not is_pod:
        return Outcome.GONE
    return Outcome.MARKED if meta["deletionGracePeriodSeconds"] else Outcome.ENDED


def is_held(obj: Json) -> bool:
    """Whether something has to be done before *obj* may go: finalizers, a namespace's too."""
    if obj["metadata"].get("finalizers"):
        return True
    return _is_namespace(obj) and bool((obj.get("spec") or {}).get("finalizers"))


def _is_namespace(obj: Json) -> bool:
    return obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"


def _hurry(meta: Json, deletion: Deletion, now: float) -> Outcome:
    """Shorten the time that an earlier deletion gave; it is never lengthened."""
    before: int = meta["deletionGracePeriodSeconds"]
    wanted = _positive(deletion.grace)
    if wanted is None or wanted >= before:
        return Outcome.MARKED
    until = seconds(meta["deletionTimestamp"]) - before + wanted
    if until < now:
        until, wanted = now, min(wanted, 1)
    meta["deletionTimestamp"] = timestamp(until)
    meta["deletionGracePeriodSeconds"] = wanted
    return Outcome.MARKED if wanted or meta.get("finalizers") else Outcome.ENDED


def _finalizers(kind: Kind, meta: Json, deletion: Deletion) -> list[str]:
    """Return what the object's own dependents have to wait for, by the deletion or by default."""
    storage = qualified(*kind.storage) if kind.storage[1] else ""
    if storage in UNOWNED:
        return []
    if deletion.propagation:
        chosen = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}
        return chosen.get(deletion.propagation, [])
    present = [f for f in meta.get("finalizers") or () if f in (ORPHAN, FOREGROUND)]
    return present or ([ORPHAN] if storage in ORPHANING else [])


def _set_propagation(meta: Json, wanted: list[str]) -> None:
    before = meta.get("finalizers") or []
    kept = [f for f in before if f not in (ORPHAN, FOREGROUND)]
    if {*kept, *wanted} == {*before}:
        return
    if kept or wanted:
        meta["finalizers"] = [*kept, *wanted]
    else:
        meta.pop("finalizers", None)


def _grace(pod: Json, deletion: Deletion) -> int:
    """Return for how long a pod stays so that its processes can end."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in FINISHED:
        return 0
    if deletion.grace is not None:
        return _positive(deletion.grace) or 0
    return max(int(spec.get("terminationGracePeriodSeconds") or 0), 0)


def _positive(grace: int | None) -> int | None:
    """Return a grace period as it counts: less than none is a second."""
    return 1 if grace is not None and grace < 0 else grace


def _mark(meta: Json, grace: int, now: float) -> None:
    meta["deletionTimestamp"] = timestamp(now + grace)
    meta["deletionGracePeriodSeconds"] = grace
    if meta.get("generation"):
        meta["generation"] += 1  # what the object is to be has changed


def _hold(obj: Json, now: float) -> None:
    meta = obj["metadata"]
    if _is_namespace(obj):
        meta.setdefault("deletionTimestamp", timestamp(now))
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    elif "deletionTimestamp" not in meta:
        _mark(meta, 0, now)
