"""What deleting an object means: gone at once, marked for its finalizers, or given time to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.clock import seconds, timestamp

Json = dict[str, Any]

_DEFAULT_GRACE = 30
_PROPAGATION = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Deletion:
    """What ``DeleteOptions`` ask for."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""


def plan_deletion(kind: Kind, obj: Json, deletion: Deletion, now: float) -> bool:
    """Mark *obj* for deletion; return True when nothing holds it and it can go at once."""
    meta = obj["metadata"]
    _set_propagation(meta, deletion.propagation)
    grace = _grace(kind, obj, deletion)
    if grace == 0 and not is_held(obj):
        return True
    _mark(meta, grace, now)
    if _is_namespace(obj):
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return False


def is_held(obj: Json) -> bool:
    """Whether something has to be done before *obj* may go: finalizers, a namespace's too."""
    if obj["metadata"].get("finalizers"):
        return True
    return _is_namespace(obj) and bool((obj.get("spec") or {}).get("finalizers"))


def _is_namespace(obj: Json) -> bool:
    return obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"


def _set_propagation(meta: Json, propagation: str) -> None:
    if not propagation:
        return
    kept = [f for f in meta.get("finalizers", ()) if f not in _PROPAGATION.values()]
    if wanted := _PROPAGATION.get(propagation):
        kept.append(wanted)
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)


def _grace(kind: Kind, obj: Json, deletion: Deletion) -> int:
    """Return for how long the object stays so that what it stands for can end."""
    if kind.group or kind.kind != "Pod":
        return 0
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in FINISHED:
        return 0
    if deletion.grace is not None:
        return max(deletion.grace, 0)
    default = spec.get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if default is None else max(int(default), 0)


def _mark(meta: Json, grace: int, now: float) -> None:
    marked = meta.get("deletionTimestamp")
    if marked is None:
        meta["deletionTimestamp"] = timestamp(now + grace)
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1  # what the object is to be has changed
    elif grace < (before := meta.get("deletionGracePeriodSeconds") or 0):
        # A later deletion may shorten the time that an earlier one gave, never lengthen it.
        meta["deletionTimestamp"] = timestamp(seconds(marked) - before + grace)
        meta["deletionGracePeriodSeconds"] = grace
