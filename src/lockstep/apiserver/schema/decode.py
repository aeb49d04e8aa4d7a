"""Whether an object can be read as its built-in kind at all.

A built-in object that cannot be read is a bad request, not an invalid object; the wording is that
of Kubernetes' JSON decoder.
"""

from __future__ import annotations

import re
from typing import Any

from lockstep.apiserver.schema.formats import is_date_time, is_well_formed
from lockstep.apiserver.schema.node import INT_OR_STRING, QUANTITY, Node

_BAD_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


def decoding_error(node: Node, value: Any) -> str | None:
    """Return why *value* cannot be read as what the built-in *node* describes, if so."""
    return _error(node, value, "", "")


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
        return (
            f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": '
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
        return given in ("string", "number")
    return given == {"boolean": "bool"}.get(node.type, node.type)


def _given(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
