"""What the metadata of any object may hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.names import (
    Check,
    dns_label,
    label_value,
    problems,
    qualified_name,
)
from lockstep.apiserver.recent import Recent, content
from lockstep.apiserver.schema.causes import (
    Cause,
    Reason,
    forbidden,
    invalid,
    required,
    show,
    too_long,
)

IMMUTABLE = "field is immutable"
_ANNOTATIONS_LIMIT = 256 * 1024
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_DESCRIBING = ("labels", "annotations", "ownerReferences", "finalizers")
_found_right: Recent[bool] = Recent()
"""Values of these in new objects, which siblings have in common, with which nothing is wrong."""


def validate_metadata(
    new: Json, old: Json | None, *, namespaced: bool, name: Check, path: str = "metadata"
) -> Iterator[Cause]:
    """Return what is wrong with the metadata *new*, which replaces *old* where that is given.

    What has not changed since is not looked at again.
    """
    if old is not None:
        yield from _description(new, old, path)
        return
    yield from _names(new, name, path)
    yield from _namespace(new, namespaced, path)
    common = content([new.get(part) for part in _DESCRIBING])
    if common is not None and _found_right.get(common):
        return
    found = list(_description(new, {}, path))
    if common is not None and not found:
        _found_right.keep(common, True)
    yield from found


def _description(new: Json, before: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with what does not name an object, and has changed."""
    if new.get("labels") != before.get("labels"):
        yield from labels(new.get("labels"), f"{path}.labels")
    if new.get("annotations") != before.get("annotations"):
        yield from _annotations(new.get("annotations") or {}, f"{path}.annotations")
    if new.get("ownerReferences") != before.get("ownerReferences"):
        yield from _owners(new.get("ownerReferences") or [], f"{path}.ownerReferences")
    if new.get("finalizers") != before.get("finalizers"):
        yield from _finalizers(new.get("finalizers") or [], before, f"{path}.finalizers")


def labels(given: Json | None, path: str) -> Iterator[Cause]:
    """Return what is wrong with a map of labels."""
    for key, value in (given or {}).items():
        yield from problems(path, key, qualified_name)
        yield from problems(path, value, label_value)


def immutable(new: Any, old: Any, path: str) -> list[Cause]:
    """Return that the field must not change, if it has."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def _names(meta: Json, check: Check, path: str) -> Iterator[Cause]:
    prefix, name = meta.get("generateName"), meta.get("name")
    if prefix:
        # A trailing dash is fine where something follows it.
        shown = f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        yield from (invalid(f"{path}.generateName", prefix, error) for error in check(shown))
    if not name:
        yield required(f"{path}.name", "name or generateName is required")
        return
    yield from problems(f"{path}.name", name, check)


def _namespace(meta: Json, namespaced: bool, path: str) -> list[Cause]:
    namespace = meta.get("namespace")
    if not namespaced:
        text = "not allowed on this type"
        return [forbidden(f"{path}.namespace", text)] if namespace else []
    if not namespace:
        return [required(f"{path}.namespace")]
    return [invalid(f"{path}.namespace", namespace, error) for error in dns_label(namespace)]


def _annotations(given: Json, path: str) -> Iterator[Cause]:
    yield from (invalid(path, key, error) for key in given for error in qualified_name(key.lower()))
    size = sum(len(k.encode()) + len(v.encode()) for k, v in given.items())
    if size > _ANNOTATIONS_LIMIT:
        yield too_long(path, _ANNOTATIONS_LIMIT)


def _owners(given: list[Json], path: str) -> Iterator[Cause]:
    controller = ""
    for owner in given:
        if not owner.get("apiVersion"):
            yield invalid(f"{path}.apiVersion", "", "version must not be empty")
        yield from (
            invalid(f"{path}.{name}", "", "must not be empty")
            for name in ("kind", "name", "uid")
            if not owner.get(name)
        )
        if owner.get("controller"):
            shown = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                text = (
                    'Only one reference can have Controller set to true. Found "true" in '
                    f"references for {controller} and {shown}"
                )
                listed = json.dumps([_in_order(each) for each in given], separators=(",", ":"))
                yield Cause(path, Reason.INVALID, f"Invalid value: {listed}: {text}")
            else:
                controller = shown


def _in_order(owner: Json) -> Json:
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def _finalizers(given: list[str], before: Json, path: str) -> Iterator[Cause]:
    yield from (invalid(path, name, error) for name in given for error in qualified_name(name))
    if _ORPHAN in given and _FOREGROUND in given:
        text = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield invalid(path, given, text)
    added = sorted(set(given) - set(before.get("finalizers") or ()))
    if before.get("deletionTimestamp") and added:
        listed = ", ".join(show(name) for name in added)
        text = "no new finalizers can be added if the object is being deleted, found new finalizers"
        yield forbidden(path, f"{text} []string{{{listed}}}")
