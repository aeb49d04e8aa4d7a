"""Custom resources: from a CRD to what is served, and the conditions that say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstep.api.wire import Json
from lockstep.apiserver.builtin import Kind
from lockstep.apiserver.builtin.kind import Validate
from lockstep.apiserver.builtin.rules import validate_metadata
from lockstep.apiserver.builtin.rules.names import dns_subdomain
from lockstep.apiserver.catalog import Served
from lockstep.apiserver.schema.causes import Cause

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def served_versions(crd: Json) -> list[Served]:
    """Return what *crd* serves: nothing unless its names are accepted."""
    if not _is_established(crd):
        return []
    stored = next((v["name"] for v in crd["spec"]["versions"] if v.get("storage")), "")
    return [_served(crd, v, stored) for v in crd["spec"]["versions"] if v.get("served")]


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _served(crd: Json, version: Json, stored: str) -> Served:
    spec = crd["spec"]
    names, group = spec["names"], spec["group"]
    declared = version.get("subresources") or {}
    kind = Kind(
        group=group,
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        schema_name="",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(name for name in ("status", "scale") if name in declared),
        selectable=tuple(
            (field["jsonPath"].lstrip("."), "") for field in version.get("selectableFields") or ()
        ),
        storage=(group, names["plural"]),
        counts_generation=True,
        verbs=_VERBS,
        validate=_metadata_of(namespaced=spec["scope"] == "Namespaced"),
    )
    return Served(
        kind,
        f"{names['plural']}.{group}",
        f"{group}/{stored}",
        list_kind=names.get("listKind") or "",
        crd=crd,
        version=version,
    )


def _metadata_of(*, namespaced: bool) -> Validate:
    """Return what checks of custom resources what their schema says nothing about."""

    def validate(new: Json, old: Json | None) -> list[Cause]:
        before = None if old is None else old.get("metadata") or {}
        meta = new.get("metadata") or {}
        return [*validate_metadata(meta, before, namespaced=namespaced, name=dns_subdomain)]

    return validate


def establish(crd: Json, others: Iterable[Served], now: str) -> None:
    """Write into a new or changed CRD's status whether its names are accepted, and serve it.

    Names that another resource of the group has are refused; what was accepted once stays so.
    """
    spec = crd["spec"]
    status: Json = crd.setdefault("status", {})
    clash = _clash(crd, others)
    if clash:
        accepted, why = "False", {"reason": clash[0], "message": clash[1]}
    else:
        accepted = "True"
        why = {"reason": "NoConflicts", "message": "no conflicts found"}
        status["acceptedNames"] = dict(spec["names"])
    conditions: list[Json] = status.get("conditions") or []
    status["conditions"] = conditions
    set_condition(conditions, "NamesAccepted", accepted, **why, now=now)
    if clash:
        if not _is_established(crd):
            why = {"reason": "NotAccepted", "message": "not all names are accepted"}
            set_condition(conditions, "Established", "False", **why, now=now)
    else:
        why = {
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }
        set_condition(conditions, "Established", "True", **why, now=now)
    stored = [v["name"] for v in spec["versions"] if v.get("storage")]
    known: Sequence[str] = status.get("storedVersions") or ()
    status["storedVersions"] = [*known, *(name for name in stored if name not in known)]
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})


def _clash(crd: Json, others: Iterable[Served]) -> tuple[str, str] | None:
    spec = crd["spec"]
    names = spec["names"]
    wanted = {names["plural"], names.get("singular") or "", *(names.get("shortNames") or ())}
    kinds = {names["kind"], names.get("listKind") or ""}
    for other in others:
        if other.kind.group != spec["group"] or _defines(crd, other):
            continue
        taken = {other.kind.plural, other.kind.singular, *other.kind.short_names}
        for name in sorted((wanted & taken) - {""}):
            return "NameConflict", f'"{name}" is already in use'
        for name in sorted((kinds & {other.kind.kind, other.list_kind}) - {""}):
            return "KindConflict", f'"{name}" is already in use'
    return None


def _defines(crd: Json, served: Served) -> bool:
    return served.crd is not None and served.crd["metadata"]["name"] == crd["metadata"]["name"]


def set_condition(
    conditions: list[Json], type_: str, value: str, *, reason: str, message: str, now: str
) -> None:
    """Set one condition in *conditions*; its time changes only with its value."""
    for condition in conditions:
        if condition["type"] == type_:
            if condition["status"] != value:
                condition["lastTransitionTime"] = now
            condition.update(status=value, reason=reason, message=message)
            return
    conditions.append(
        {
            "type": type_,
            "status": value,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }
    )
