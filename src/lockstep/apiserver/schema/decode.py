"""Whether an object can be read as its built-in kind at all.

A built-in object that cannot be read is a bad request, not an invalid object; the wording is that
of Kubernetes' JSON decoder.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from lockstep.apiserver.schema.formats import is_date_time, is_quantity, is_well_formed
from lockstep.apiserver.schema.node import INT_OR_STRING, QUANTITY, Node

_BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WORDS = {
    "string": "a string",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
    "object": "an object",
    "array": "a list",
    QUANTITY: "a quantity such as 500m or 16Gi",
    INT_OR_STRING: "a whole number or a string",
}
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


class Misfit(NamedTuple):
    """What in an object cannot be read."""

    at: str
    """Its path, with the keys of maps and the indices of lists."""
    given: Any
    wanted: str
    """What could be read there, in words."""
    error: str
    """What Kubernetes says."""


class _Place(NamedTuple):
    """Where a value is."""

    at: str
    owner: str = ""
    """The struct of Go, and below that the field."""
    field: str = ""


def misfit(node: Node, value: Any, at: str = "") -> Misfit | None:
    """Return the first that cannot be read as what the built-in *node* describes, if any.

    Its path begins with *at*.
    """
    return _misfit(node, value, _Place(at))


def conversion_error(node: Node, value: Any) -> str | None:
    """Return why *value* cannot be converted to the Go type that *node* describes, if so.

    Strategic merge patches are converted and not decoded, which has other words.
    """
    if value is None or node.type == "":
        return None
    given = _given(value)
    if not _fits(node, value, given):
        if node.type in ("object", "array"):
            target = "struct" if node.properties else {"array": "slice"}.get(node.type, "map")
            source = {"array": "slice", "object": "map", "number": "int64"}.get(given, given)
            return f"cannot restore {target} from: {source}"
        if node.type in (QUANTITY, INT_OR_STRING):
            return _mismatch(node, value, given, _Place(""))
        return f"unrecognized type: {_go_type(node)}"
    if isinstance(value, dict):
        members = ((node.properties.get(key) or node.values, one) for key, one in value.items())
        errors = (conversion_error(child, one) for child, one in members if child is not None)
        return next((error for error in errors if error), None)
    if isinstance(value, list) and node.items is not None:
        errors = (conversion_error(node.items, item) for item in value)
        return next((error for error in errors if error), None)
    return None


def go_value(value: Any) -> str:
    """Return a JSON value as Go prints it when it is decoded into maps and slices."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_value, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def unstructured(value: Any) -> str:
    """Return a JSON value as Go prints the wrapper that server-side apply has around it."""
    return f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"


def _go_syntax(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{json.dumps(k)}:{_go_syntax(value[k])}" for k in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False)


def _misfit(node: Node, value: Any, place: _Place) -> Misfit | None:
    if value is None or node.type == "":
        return None
    given = _given(value)
    if not _fits(node, value, given):
        wanted = _WORDS.get(node.type, node.type)
        return Misfit(place.at, value, wanted, _mismatch(node, value, given, place))
    if isinstance(value, dict):
        return _first_misfit(node, value, place)
    if isinstance(value, list) and node.items is not None:
        for i, item in enumerate(value):
            if found := _misfit(node.items, item, place._replace(at=f"{place.at}[{i}]")):
                return found
        return None
    if node.bounds.get("format") == "byte" and not is_well_formed("byte", value):
        legal = re.match("[A-Za-z0-9+/]*", value)
        error = f"illegal base64 data at input byte {legal.end() if legal else 0}"
        return Misfit(place.at, value, "base64", error)
    if node.bounds.get("format") == "date-time" and not is_date_time(value):
        fraction = ".000000" if node.name.endswith("MicroTime") else ""
        error = (
            f'parsing time "{value}" as "2006-01-02T15:04:05{fraction}Z07:00": '
            f'cannot parse "{value}" as "2006"'
        )
        return Misfit(place.at, value, "a time such as 2026-01-01T00:00:00Z", error)
    return None


def _first_misfit(node: Node, value: dict[str, Any], place: _Place) -> Misfit | None:
    struct = node.name.rpartition(".")[2] or place.owner
    for key, member in value.items():
        if key in node.properties:
            child: Node | None = node.properties[key]
            at, field = (f"{above}.{key}" if above else key for above in (place.at, place.field))
        else:
            child, at, field = node.values, f"{place.at}[{key}]", place.field
        if child is not None and (found := _misfit(child, member, _Place(at, struct, field))):
            return found
    return None


def _mismatch(node: Node, value: Any, given: str, place: _Place) -> str:
    if node.type == QUANTITY:
        return _BAD_QUANTITY
    if node.type == INT_OR_STRING:
        return f"json: cannot unmarshal {given} into Go value of type int32"
    shown = f"number {value}" if given == "number" and node.type == "integer" else given
    where = f"Go struct field {place.owner}.{place.field}" if place.field else "Go value"
    return f"json: cannot unmarshal {shown} into {where} of type {_go_type(node)}"


def _go_type(node: Node) -> str:
    if node.type == "integer":
        return node.bounds.get("format") or "int64"
    if node.type == "array":
        return f"[]{_go_type(node.items)}" if node.items else "[]interface {}"
    if node.type == "object" and not node.name:
        return f"map[string]{_go_type(node.values)}" if node.values else "map[string]interface {}"
    if node.name:
        package, _, struct = node.name.rpartition(".")
        return f"{package.rpartition('.')[2]}.{struct}"
    return _GO_TYPES.get(node.type, node.type)


def _fits(node: Node, value: Any, given: str) -> bool:
    if node.type == "integer":
        limit = 2**31 if node.bounds.get("format") == "int32" else 2**63
        return isinstance(value, int) and given == "number" and -limit <= value < limit
    if node.type == INT_OR_STRING:
        return given == "string" or (isinstance(value, int) and given == "number")
    if node.type == QUANTITY:
        return given == "number" or (given == "string" and is_quantity(value))
    return given == {"boolean": "bool"}.get(node.type, node.type)


def _given(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
