"""``metadata.managedFields``: who set which field, kept up to date by every write."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.patch.fieldset import (
    LEAF,
    SELF,
    FieldSet,
    difference,
    in_order,
    intersection,
    is_well_formed,
    union,
)
from lockstep.apiserver.patch.structured import Comparison, compare
from lockstep.apiserver.patch.types import Type

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"

# What the server sets belongs to no manager.
_UNMANAGED_METADATA: Final = (
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:clusterName",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
)
_UNMANAGED: Final[FieldSet] = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {SELF: LEAF, **dict.fromkeys(_UNMANAGED_METADATA, LEAF)},
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through which version and subresource, and when (Unix time)."""

    manager: str
    api_version: str
    now: float
    subresource: str = ""

    def identity(self, operation: str) -> Identity:
        """Return under which entry its fields are kept."""
        version = "" if operation == APPLY else self.api_version
        return (self.manager or "unknown", operation, version, self.subresource)


Identity = tuple[str, str, str, str]
"""Manager, operation, version (of updates only) and subresource."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The fields of one manager."""

    fields: FieldSet
    api_version: str
    time: str | None


Managers = dict[Identity, Entry]


def decode(entries: Any, *, check: bool = False) -> Managers | None:
    """Return the managers of an object; nothing when they cannot be read.

    Field sets that a client sent are to be checked; those of stored objects are in order.
    """
    managers: Managers = {}
    if not isinstance(entries, list):
        return managers if entries is None else None
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in {APPLY, UPDATE}:
            return None
        version, fields = entry.get("apiVersion"), entry.get("fieldsV1", {})
        if not version or entry.get("fieldsType") != "FieldsV1":
            return None
        if check and not is_well_formed(fields):
            return None
        operation = entry["operation"]
        kept = "" if operation == APPLY else version
        identity = (entry.get("manager", ""), operation, kept, entry.get("subresource", ""))
        managers[identity] = Entry(fields, version, entry.get("time"))
    return managers


def encode(managers: Managers) -> list[Json]:
    """Return the managers as they stand in an object: appliers first, then by age."""
    ordered = sorted(
        managers.items(), key=lambda m: (m[0][1], m[1].time or "", m[0][0], m[1].api_version)
    )
    return [_encode_entry(identity, entry) for identity, entry in ordered]


def _encode_entry(identity: Identity, entry: Entry) -> Json:
    manager, operation, _, subresource = identity
    encoded: Json = {
        "manager": manager,
        "operation": operation,
        "apiVersion": entry.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
    }
    if entry.time is not None:
        encoded["time"] = entry.time
    if subresource:
        encoded["subresource"] = subresource
    return encoded


def set_managers(obj: Json, managers: Managers) -> None:
    """Write the managers into an object."""
    metadata = obj.setdefault("metadata", {})
    if managers:
        metadata["managedFields"] = encode(managers)
    else:
        metadata.pop("managedFields", None)


def track(
    old: Json | None,
    new: Json,
    kind: Type,
    by: Writer,
    *,
    ignored: Set[str] = frozenset(),
) -> None:
    """Note in a new object, in place, which fields this write has set.

    Call it for every write other than an apply, after defaults are filled in and with what the
    write may not change put back. A client that sends an empty list of managers resets them. What
    is called as one of *ignored* says, at the top of the object, has no manager.
    """
    if old is None:
        _track_creation(new, kind, by, ignored)
        return
    metadata = new.setdefault("metadata", {})
    live = (old.get("metadata") or {}).get("managedFields")
    sent = metadata.get("managedFields")
    if not by.subresource and isinstance(sent, list) and sent in ([], [{}]):
        metadata.pop("managedFields", None)
        return
    managers = decode(live) or {}
    if sent and sent != live and not by.subresource:
        managers = decode(sent, check=True) or managers
    if managers:
        # An object without managers stays so until the first apply.
        changes = compare(_claimable(old, ignored), _claimable(new, ignored), kind)
        managers = updated(managers, changes, by)
    set_managers(new, managers)


def _track_creation(new: Json, kind: Type, by: Writer, ignored: Set[str]) -> None:
    metadata = new.setdefault("metadata", {})
    sent = metadata.pop("managedFields", None)
    managers: Managers = (decode(sent, check=True) or {}) if sent else {}
    fields = whole(_claimable(new, ignored), kind)
    if fields is not None:
        managers[by.identity(UPDATE)] = Entry(in_order(fields), by.api_version, timestamp(by.now))
    if managers:
        metadata["managedFields"] = encode(managers)


def _claimable(obj: Json, ignored: Set[str]) -> Json:
    if not ignored.isdisjoint(obj):
        obj = {name: value for name, value in obj.items() if name not in ignored}
    metadata = obj.get("metadata") or {}
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def changed_fields(changes: Comparison) -> FieldSet | None:
    """Return what was modified or added."""
    return union(changes.modified, changes.added)


def updated(managers: Managers, changes: Comparison, by: Writer) -> Managers:
    """Return the managers after an update: it owns what it changed; what it removed has none."""
    changed = changed_fields(changes)
    if changed is None and changes.removed is None:
        return managers
    result = released(managers, changed, changes.removed)
    own = difference(changed, _UNMANAGED)
    if own is not None:
        identity = by.identity(UPDATE)
        before = result.get(identity)
        fields = union(own, before.fields if before else None) or LEAF
        # Kubernetes loses the time of who scales, on the way through the other kind.
        time = None if by.subresource == "scale" else timestamp(by.now)
        result[identity] = Entry(in_order(fields), by.api_version, time)
    return _capped(result)


def released(
    managers: Managers,
    changed: FieldSet | None,
    removed: FieldSet | None,
    *,
    keep: Identity | None = None,
) -> Managers:
    """Return the managers without the fields that another client changed or removed."""
    result = {}
    for identity, entry in managers.items():
        if identity == keep:
            result[identity] = entry
            continue
        fields = difference(difference(entry.fields, changed), removed)
        if fields is entry.fields:
            result[identity] = entry
        elif fields is not None:
            result[identity] = replace(entry, fields=fields)
    return result


def overlaps(
    managers: Managers, changed: FieldSet | None, but: Identity
) -> dict[Identity, FieldSet]:
    """Return which other managers own some of the changed fields."""
    found = {}
    for identity, entry in managers.items():
        if identity != but:
            common = intersection(entry.fields, changed)
            if common is not None:
                found[identity] = common
    return found


def without_unmanaged(fields: FieldSet | None) -> FieldSet | None:
    """Return the fields that may have a manager."""
    return difference(fields, _UNMANAGED)


def whole(obj: Json, kind: Type) -> FieldSet | None:
    """Return every field of an object that may have a manager."""
    return difference(changed_fields(compare({}, obj, kind)), _UNMANAGED)


def _capped(managers: Managers) -> Managers:
    """Fold the oldest updaters of each version into one, so that the list stays short."""
    updaters = [identity for identity in managers if identity[1] == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    result = dict(managers)
    buckets: dict[str, Identity] = {}
    for identity in _oldest_first(updaters, managers):
        if excess <= 0:
            break
        entry = managers[identity]
        bucket = (ANCIENT, UPDATE, entry.api_version, "")
        first = buckets.get(entry.api_version)
        if first is None:
            buckets[entry.api_version] = identity
            continue
        if bucket not in result:
            result[bucket] = result.pop(first)
        fields = union(result[bucket].fields, entry.fields) or LEAF
        if identity != bucket:
            del result[identity]
        result[bucket] = Entry(in_order(fields), entry.api_version, entry.time)
        excess -= 1
    return result


def _oldest_first(updaters: Iterable[Identity], managers: Managers) -> list[Identity]:
    return sorted(updaters, key=lambda identity: (managers[identity].time or "", identity))
