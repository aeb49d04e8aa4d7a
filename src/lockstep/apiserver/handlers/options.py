"""The query parameters of requests, checked as Kubernetes checks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.apiserver.objects import WriteOptions
from lockstep.apiserver.schema.causes import (
    Cause,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from lockstep.apiserver.status import bad_request, failed, invalid_options

Query = Mapping[str, str]

_LONGEST_MANAGER = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_NOT_OLDER, _EXACT = "NotOlderThan", "Exact"
_PROPAGATIONS = ("Foreground", "Background", "Orphan", "nil")


def flag(query: Query, name: str) -> bool:
    """Return whether a boolean parameter is set: anything but ``false`` and ``0`` sets it."""
    value = query.get(name)
    return value is not None and value.lower() not in ("false", "0")


def number(query: Query, name: str) -> int | None:
    """Return the number that a parameter holds, if it is given.

    Raises:
        StatusError: when it is no number.
    """
    text = query.get(name)
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not digits.isascii() or not digits.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def revision(query: Query) -> int:
    """Return the resource version that a request names, 0 where it names none.

    Raises:
        StatusError: when it is none that there can be; reads of one object answer this so.
    """
    text = query.get("resourceVersion", "")
    if text and not (text.isascii() and text.isdigit()):
        raise failed(unreadable_revision(text))
    return int(text or 0)


def unreadable_revision(text: str) -> str:
    """Return what is wrong with a resource version that is no number."""
    wrong = invalid("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return str(wrong)


def write_options(query: Query, agent: str, *, kind: str, applies: bool = False) -> WriteOptions:
    """Return the options of a write.

    Args:
        query: The request's parameters.
        agent: Its ``User-Agent``, which names the manager where no parameter does.
        kind: What Kubernetes calls these options, as in ``CreateOptions``.
        applies: Whether it is a server-side apply, which has an option of its own.

    Raises:
        StatusError: when one of them has a value that it cannot have.
    """
    dry_run, manager = query.get("dryRun", ""), query.get("fieldManager", "")
    validation = query.get("fieldValidation", "")
    if causes := [
        *_force(query, kind, applies=applies),
        *_manager(manager, needed=applies),
        *dry_run_causes([dry_run] if dry_run else []),
        *_validation(validation),
    ]:
        raise invalid_options(kind, causes)
    return WriteOptions(
        dry_run=bool(dry_run),
        manager=manager or agent.partition("/")[0][:_LONGEST_MANAGER] or "unknown",
        validation=validation or "Warn",
        force=flag(query, "force"),
        patches=kind == "PatchOptions",
    )


def _force(query: Query, kind: str, *, applies: bool) -> list[Cause]:
    if kind == "PatchOptions" and not applies and "force" in query:
        return [forbidden("force", "may not be specified for non-apply patch")]
    return []


def _manager(manager: str, *, needed: bool) -> list[Cause]:
    if needed and not manager:
        return [required("fieldManager", "is required for apply patch")]
    if len(manager.encode()) > _LONGEST_MANAGER:
        return [too_long("fieldManager", _LONGEST_MANAGER)]
    if not manager.isprintable():
        return [invalid("fieldManager", manager, "should only contain printable characters")]
    return []


def dry_run_causes(given: Any) -> list[Cause]:
    """Return what is wrong with a list of stages that a dry run goes through."""
    if not given or given == ["All"]:
        return []
    return [not_supported("dryRun", given, ["All"])]


def _validation(given: str) -> list[Cause]:
    if given in _VALIDATIONS:
        return []
    return [not_supported("fieldValidation", given, _VALIDATIONS)]


def require_list_options(query: Query) -> None:
    """Require that the options of a list fit each other.

    Raises:
        StatusError: when they do not.
    """
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    where, causes = "resourceVersionMatch", []
    if match:
        if not version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(forbidden(where, why))
        if query.get("continue"):
            why = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden(where, why))
        if match not in (_EXACT, _NOT_OLDER):
            causes.append(not_supported(where, match, (_EXACT, _NOT_OLDER, "")))
        if match == _EXACT and version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(forbidden(where, why))
    if "sendInitialEvents" in query:
        causes.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if causes:
        raise invalid_options("ListOptions", causes)


def require_watch_options(query: Query) -> None:
    """Require that the options of a watch fit each other.

    Raises:
        StatusError: when they do not.
    """
    match, where = query.get("resourceVersionMatch", ""), "resourceVersionMatch"
    sends = "sendInitialEvents" in query
    if not sends and not match and query.get("resourceVersion", "") in ("", "0"):
        # A watch from nowhere in particular begins with what is there.
        sends, match = True, _NOT_OLDER
    causes = []
    if sends and match != _NOT_OLDER:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(forbidden(where, why))
    if match:
        if not sends:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(forbidden(where, why))
        if match != _NOT_OLDER:
            causes.append(not_supported(where, match, (_NOT_OLDER,)))
        if query.get("continue"):
            why = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden(where, why))
    if causes:
        raise invalid_options("ListOptions", causes)


def deletion_causes(body: Mapping[str, Any], propagation: str) -> list[Cause]:
    """Return what is wrong with ``DeleteOptions``."""
    causes = []
    where = "propagationPolicy"
    if propagation and propagation not in _PROPAGATIONS[:-1]:
        causes.append(not_supported(where, propagation, _PROPAGATIONS))
    if propagation and body.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(invalid(where, propagation, why))
    return [*causes, *dry_run_causes(body.get("dryRun"))]
