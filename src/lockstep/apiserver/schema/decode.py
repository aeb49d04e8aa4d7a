"""Whether an object can be read as its built-in kind at all.

A built-in object that cannot be read is a bad request, not an invalid object; the wording is that
of Kubernetes' JSON decoder.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lockstep.apiserver.schema.formats import is_date_time, is_quantity, is_well_formed
from lockstep.apiserver.schema.node import INT_OR_STRING, QUANTITY, Node

_BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


def decoding_error(node: Node, value: Any) -> str | None:
    """Return why *value* cannot be read as what the built-in *node* describes, if so."""
    return _error(node, value, "", "")


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
            return _mismatch(node, value, given, "", "")
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


def strict_error(unknown: list[str]) -> str:
    """Return what a strict server says of *unknown* fields."""
    return "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown)


def cannot_be_handled(kind: str, version: str, why: str) -> str:
    """Return the message of the bad request for an object of *kind* that cannot be read."""
    return f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'


def _error(node: Node, value: Any, owner: str, path: str) -> str | None:
    if value is None or node.type == "":
        return None
    given = _given(value)
    if not _fits(node, value, given):
        return _mismatch(node, value, given, owner, path)
    if isinstance(value, dict):
        return _object_error(node, value, owner, path)
    if isinstance(value, list) and node.items is not None:
        errors = (_error(node.items, item, owner, path) for item in value)
        return next((error for error in errors if error), None)
    if node.bounds.get("format") == "byte" and not is_well_formed("byte", value):
        legal = re.match("[A-Za-z0-9+/]*", value)
        return f"illegal base64 data at input byte {legal.end() if legal else 0}"
    if node.bounds.get("format") == "date-time" and not is_date_time(value):
        fraction = ".000000" if node.name.endswith("MicroTime") else ""
        return (
            f'parsing time "{value}" as "2006-01-02T15:04:05{fraction}Z07:00": '
            f'cannot parse "{value}" as "2006"'
        )
    return None


def _object_error(node: Node, value: dict[str, Any], owner: str, path: str) -> str | None:
    struct = node.name.rpartition(".")[2] or owner
    for key, member in value.items():
        child = node.properties.get(key) or node.values
        if child is not None:
            below = f"{path}.{key}" if path else key
            error = _error(child, member, struct, below if key in node.properties else path)
            if error:
                return error
    return None


def _mismatch(node: Node, value: Any, given: str, owner: str, path: str) -> str:
    if node.type == QUANTITY:
        return _BAD_QUANTITY
    if node.type == INT_OR_STRING:
        return f"json: cannot unmarshal {given} into Go value of type int32"
    shown = f"number {value}" if given == "number" and node.type == "integer" else given
    where = f"Go struct field {owner}.{path}" if path else "Go value"
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
