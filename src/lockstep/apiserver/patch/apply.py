"""Server-side apply: a manager states the fields that it cares about, and owns them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from lockstep.api.wire import Json
from lockstep.apiserver.clock import timestamp
from lockstep.apiserver.patch.errors import PatchError, conflicting, malformed, mistyped
from lockstep.apiserver.patch.fieldset import (
    FieldSet,
    difference,
    in_order,
    intersection,
    paths,
    union,
)
from lockstep.apiserver.patch.managed import (
    APPLY,
    UPDATE,
    Entry,
    Identity,
    Managers,
    Writer,
    changed_fields,
    decode,
    overlaps,
    released,
    set_managers,
    whole,
    without_unmanaged,
)
from lockstep.apiserver.patch.structured import (
    check_shape,
    compare,
    field_set,
    merge,
    remove,
    with_named_parents,
)
from lockstep.apiserver.patch.types import ABSENT, Type

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_IDENTITY: Final = ("apiVersion", "kind")


def apply(live: Json | None, applied: Json, kind: Type, by: Writer, *, force: bool = False) -> Json:
    """Return the object after a manager has applied its configuration; nothing given is changed.

    With no live object the result is what to create. The result lacks defaults: fill them in
    afterwards, they have no manager.

    Raises:
        PatchError: Another manager owns a field that would change (409, unless *force*), or the
            configuration is not of the right version or shape.
    """
    _check(applied, kind, by)
    current: Json = live if live is not None else _empty(applied)
    managers = decode((current.get("metadata") or {}).get("managedFields")) or {}
    current = _bare(current)
    if not managers and live is not None:
        managers = _before_first_apply(current, kind, by)
    new, after, conflicts = _applied(current, applied, kind, by, managers, force=force)
    if conflicts and by.manager == _KUBECTL:
        conflicts = _unexplained(conflicts, _last_applied(current, kind, by))
        if not conflicts:
            new, after, _ = _applied(current, applied, kind, by, managers, force=True)
    if conflicts:
        raise _conflict_error(conflicts)
    if by.manager == _KUBECTL:
        _refresh_last_applied(new, applied)
    set_managers(new, after)
    return new


def relevant(applied: Json, subresource: str, *, has_status: bool) -> Json:
    """Return the part of a configuration that may be applied through a subresource.

    The status is only written through its own subresource, and nothing else is through that.
    """
    if subresource == "status":
        metadata = {
            key: value
            for key, value in (applied.get("metadata") or {}).items()
            if key in {"name", "namespace", "uid", "resourceVersion", "managedFields"}
        }
        kept: Json = {key: applied[key] for key in (*_IDENTITY, "status") if key in applied}
        return {**kept, "metadata": metadata}
    if has_status:
        return {key: value for key, value in applied.items() if key != "status"}
    return applied


def _check(applied: Json, kind: Type, by: Writer) -> None:
    version = applied.get("apiVersion")
    if version != by.api_version:
        raise malformed(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {by.api_version}"
        )
    metadata = applied.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise mistyped(".metadata: expected map")
    if metadata.get("managedFields") is not None:
        raise malformed("metadata.managedFields must be nil")
    name, namespace = (_text(metadata.get(field)) for field in ("name", "namespace"))
    try:
        check_shape(applied, kind)
    except PatchError as error:
        group_version = by.api_version if "/" in by.api_version else f"/{by.api_version}"
        subject = f"{namespace}/{name}; {group_version}, Kind={applied.get('kind', '')}"
        raise mistyped(f"failed to create typed patch object ({subject}): {error}") from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _empty(applied: Json) -> Json:
    return {key: applied[key] for key in _IDENTITY if key in applied}


def _bare(obj: Json) -> Json:
    metadata = dict(obj.get("metadata") or {})
    metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata} if metadata or "metadata" in obj else obj


def _before_first_apply(live: Json, kind: Type, by: Writer) -> Managers:
    fields = whole(live, kind)
    if fields is None:
        return {}
    writer = replace(by, manager=_BEFORE_FIRST_APPLY)
    return {writer.identity(UPDATE): Entry(in_order(fields), by.api_version, timestamp(by.now))}


def _applied(
    live: Json, applied: Json, kind: Type, by: Writer, managers: Managers, *, force: bool
) -> tuple[Json, Managers, dict[Identity, FieldSet]]:
    identity = by.identity(APPLY)
    last = managers.get(identity)
    fields = field_set(applied, kind)
    merged: Json = merge(live, applied, kind)
    if last is not None:
        owned = fields
        for other, entry in managers.items():
            if other != identity:
                owned = union(owned, entry.fields)
        # An empty map that is applied must not go with the members that it had.
        merged = merge(_prune(merged, last.fields, owned, kind), applied, kind)
    changes = compare(live, merged, kind)
    changed = changed_fields(changes)
    conflicts = overlaps(managers, changed, but=identity)
    if conflicts and not force:
        return merged, managers, conflicts
    after = released(managers, changed, changes.removed, keep=identity)
    own = without_unmanaged(fields)
    unchanged = changed is None and changes.removed is None
    if own is None:
        after.pop(identity, None)
    else:
        # An apply that changes nothing is no news: who applies so for the first time has no time.
        time = timestamp(by.now) if not unchanged else last.time if last is not None else None
        after[identity] = Entry(in_order(own), by.api_version, time)
    return merged, after, {}


def _prune(merged: Json, last: FieldSet, owned: FieldSet | None, kind: Type) -> Json:
    """Remove what the manager applied the last time and no manager states any more."""
    last_named = with_named_parents(last, kind)
    pruned = _removed(merged, last_named, kind, owned)
    everything = _named_fields(merged, kind)
    kept = union(_named_fields(pruned, kind), with_named_parents(owned, kind) if owned else None)
    pruned = _removed(merged, difference(everything, kept), kind, owned)
    gone = difference(everything, _named_fields(pruned, kind))
    return _removed(merged, intersection(gone, last_named), kind, owned)


def _named_fields(obj: Json, kind: Type) -> FieldSet | None:
    fields = field_set(obj, kind)
    return with_named_parents(fields, kind) if fields else None


def _removed(obj: Json, fields: FieldSet | None, kind: Type, owned: FieldSet | None) -> Json:
    if fields is None:
        return obj
    rest = remove(obj, fields, kind, owned)
    return {} if rest is ABSENT else rest


def _last_applied(live: Json, kind: Type, by: Writer) -> FieldSet | None:
    """Return the fields that kubectl owns by an earlier client-side apply."""
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    try:
        configuration = json.loads(annotations.get(LAST_APPLIED) or "null")
    except ValueError:
        return None
    if not isinstance(configuration, dict) or configuration.get("apiVersion") != by.api_version:
        return None
    changes = compare(configuration, live, kind)
    fields = field_set(configuration, kind)
    for differing in (changes.modified, changes.added, changes.removed):
        fields = difference(fields, differing)
    return fields


def _unexplained(
    conflicts: dict[Identity, FieldSet], allowed: FieldSet | None
) -> dict[Identity, FieldSet]:
    rest = {}
    for identity, fields in conflicts.items():
        remaining = difference(fields, allowed)
        if remaining is not None:
            rest[identity] = remaining
    return rest


def _refresh_last_applied(new: Json, applied: Json) -> None:
    """Keep a client-side apply after this one from undoing it."""
    metadata = new.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    stated = _bare(applied)
    own = dict(stated["metadata"].get("annotations") or {})
    own.pop(LAST_APPLIED, None)
    rest = {key: value for key, value in stated["metadata"].items() if key != "annotations"}
    stated = {**stated, "metadata": {**rest, "annotations": own} if own else rest}
    text = json.dumps(stated, separators=(",", ":"), ensure_ascii=False) + "\n"
    new["metadata"] = {**metadata, "annotations": {**annotations, LAST_APPLIED: text}}


def _conflict_error(conflicts: dict[Identity, FieldSet]) -> PatchError:
    found = [
        (_show_manager(identity), path)
        for identity, fields in sorted(conflicts.items())
        for path in paths(fields)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, path in found
    ]
    if len(found) == 1:
        who, path = found[0]
        message = f"Apply failed with 1 conflict: conflict with {who}: {path}"
        return conflicting(message, causes)
    lines = []
    for who in dict.fromkeys(who for who, _ in found):
        lines.append(f"conflicts with {who}:")
        lines += [f"- {path}" for other, path in found if other == who]
    message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return conflicting(message, causes)


def _show_manager(identity: Identity) -> str:
    manager, operation, version, subresource = identity
    shown = json.dumps(manager, ensure_ascii=False)
    if subresource:
        shown += f" with subresource {json.dumps(subresource)}"
    return f"{shown} using {version}" if operation == UPDATE else shown
