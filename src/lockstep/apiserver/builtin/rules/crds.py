"""What a CustomResourceDefinition may look like, and what of it may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.metadata import immutable
from lockstep.apiserver.builtin.rules.names import dns_1035_label, dns_subdomain
from lockstep.apiserver.schema.causes import Cause, invalid, not_supported, required
from lockstep.apiserver.schema.structural import schema_problems

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_SCOPES = ("Cluster", "Namespaced")


def definition(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with the definition of a custom resource."""
    spec = new.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return
    name = (new.get("metadata") or {}).get("name") or ""
    names, group = spec.get("names") or {}, spec.get("group") or ""
    if name != f"{names.get('plural', '')}.{group}":
        text = 'must be spec.names.plural+"."+spec.group'
        yield invalid("metadata.name", name, text)
    yield from _group(group)
    scope = spec.get("scope")
    if not scope:
        yield required("spec.scope")
    elif scope not in _SCOPES:
        yield not_supported("spec.scope", scope, _SCOPES)
    yield from _versions(spec.get("versions") or [])
    yield from _names(names)
    strategy = (spec.get("conversion") or {}).get("strategy", "None")
    if strategy != "None":
        # Webhooks that convert between versions are not called here.
        yield not_supported("spec.conversion.strategy", strategy, ("None",))
    if old is not None:
        yield from _change(spec, old.get("spec") or {})


def _group(group: str) -> list[Cause]:
    if not group:
        return [required("spec.group")]
    if errors := dns_subdomain(group):
        return [invalid("spec.group", group, ",".join(errors))]
    if "." not in group:
        return [invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _versions(versions: list[Json]) -> Iterator[Cause]:
    for position, version in enumerate(versions):
        name, schema = version.get("name") or "", _schema(version)
        if errors := dns_1035_label(name):
            text = ",".join(errors)
            yield invalid(f"spec.versions[{position}].name", name, text)
        if schema is None:
            yield required(f"spec.versions[{position}].schema.openAPIV3Schema")
    yield from _each(versions, _schema, "schema.openAPIV3Schema", "validation.openAPIV3Schema")
    yield from _each(versions, lambda v: v.get("subresources"), "subresources", "subresources")
    shown = "additionalPrinterColumns"
    yield from _each(versions, lambda v: v.get(shown), shown, shown)
    listed = [version.get("name") for version in versions]
    if len(set(listed)) != len(listed):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", versions, text)


def _schema(version: Json) -> Json | None:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _each(
    versions: list[Json], read: Callable[[Json], Any], inside: str, shared: str
) -> Iterable[Cause]:
    """Check a part of every version; one that all share is spoken of as the definition's own."""
    parts = [read(version) for version in versions]
    check = _CHECKS[shared]
    if parts and all(part == parts[0] for part in parts):
        return check(parts[0], f"spec.{shared}") if parts[0] else []
    return [
        cause
        for position, part in enumerate(parts)
        if part
        for cause in check(part, f"spec.versions[{position}].{inside}")
    ]


def _columns(columns: list[Json], path: str) -> list[Cause]:
    return [c for i, column in enumerate(columns) for c in _column(column, f"{path}[{i}]")]


def _subresources(given: Json, path: str) -> Iterator[Cause]:
    scale = given.get("scale")
    if scale is None:
        return
    for name, parent in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        at, value = f"{path}.scale.{name}", scale.get(name)
        if not value:
            yield required(at)
        elif not value.startswith("."):
            text = "must be a simple json path starting with ."
            yield invalid(at, value, text)
        elif not value.startswith(f"{parent}."):
            yield invalid(at, value, f"should be a json path under {parent}")


def _column(column: Json, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield required(f"{path}.name")
    given, choices = column.get("type"), ",".join(_COLUMN_TYPES)
    if not given:
        yield required(f"{path}.type", f"must be one of {choices}")
    elif given not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", given, f"must be one of {choices}")
    where = column.get("jsonPath") or ""
    if not where:
        yield required(f"{path}.JSONPath")
    elif not where.startswith("."):
        text = "must be a simple json path starting with ."
        yield invalid(f"{path}.JSONPath", where, text)


def _names(names: Json) -> Iterator[Cause]:
    mixed = "may have mixed case, but should otherwise match: "
    for field in ("plural", "singular", "kind", "listKind"):
        value, path = names.get(field) or "", f"spec.names.{field}"
        if not value:
            yield required(path)
            continue
        is_mixed = field in ("kind", "listKind")
        errors = dns_1035_label(value.lower() if is_mixed else value)
        if errors:
            text = ",".join(errors)
            yield invalid(path, value, f"{mixed}{text}" if is_mixed else text)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        text = "kind and listKind may not be the same"
        yield invalid("spec.names.listKind", names["listKind"], text)
    for field in ("shortNames", "categories"):
        for position, value in enumerate(names.get(field) or ()):
            if errors := dns_1035_label(value):
                at = f"spec.names.{field}[{position}]"
                yield invalid(at, value, ",".join(errors))


def _change(new: Json, old: Json) -> list[Cause]:
    after, before = new.get("names") or {}, old.get("names") or {}
    return [
        *immutable(new.get("scope"), old.get("scope"), "spec.scope"),
        *immutable(after.get("kind"), before.get("kind"), "spec.names.kind"),
        *immutable(new.get("group"), old.get("group"), "spec.group"),
        *immutable(after.get("plural"), before.get("plural"), "spec.names.plural"),
    ]


_CHECKS: dict[str, Callable[[Any, str], Iterable[Cause]]] = {
    "validation.openAPIV3Schema": schema_problems,
    "subresources": _subresources,
    "additionalPrinterColumns": _columns,
}
RULES = {"CustomResourceDefinition": definition}
