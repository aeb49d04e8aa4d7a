"""The slow check: everything that a structural schema says about a value, and why it fails.

The wording is that of the Kubernetes API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.schema.causes import (
    Cause,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)
from lockstep.apiserver.schema.formats import is_well_formed
from lockstep.apiserver.schema.node import INT_OR_STRING, UNSET, Node
from lockstep.apiserver.schema.patterns import found

_JSON_TYPES: dict[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}

_NUMBER_FORMATS = ("int32", "int64", "float", "double")


@dataclass(slots=True)
class Checker:
    """One pass over an object; *causes* collects what is wrong.

    With *quick* only what the fast check leaves open is looked at. A part that equals its old
    value is not looked at again, so that a schema may become stricter under stored objects.
    """

    causes: list[Cause]
    quick: bool = False

    def check(self, node: Node, value: Any, old: Any, path: str) -> None:
        """Check *value*, which was *old* before (``UNSET`` where it is new)."""
        if old is not UNSET and old == value and type(old) is type(value):
            return
        if not _has_type(node, value):
            self._wrong_type(node, value, path)
            return
        if value is None:
            return
        if isinstance(value, dict):
            self._object(node, value, old, path)
        elif isinstance(value, list):
            self._list(node, value, old, path)
        elif isinstance(value, str):
            self._text(node, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(node, value, path)
        self._enum(node, value, path)
        self._junctors(node, value, path)

    def _wrong_type(self, node: Node, value: Any, path: str) -> None:
        expected = "integer,string" if node.type == INT_OR_STRING else node.type
        given = _JSON_TYPES[type(value)]
        fmt = node.bounds.get("format", "")
        if fmt in _NUMBER_FORMATS and isinstance(value, bool | float | dict):
            expected, given = fmt, "float64" if isinstance(value, float) else ""
        detail = f'{path} in body must be of type {expected}: "{given}"'
        self.causes.append(type_invalid(path, given, detail))
        if node.type == "integer" and isinstance(value, float):
            detail = f"Checked value must be of type integer (default format) in {path}"
            self.causes.append(invalid("<nil>", "", detail))

    def _object(self, node: Node, value: Json, old: Any, path: str) -> None:
        size, bounds = len(value), node.bounds
        if size < bounds.get("minProperties", 0):
            detail = f"{path} in body should have at least {bounds['minProperties']} properties"
            self.causes.append(invalid(path, size, detail))
        if size > bounds.get("maxProperties", size):
            self.causes.append(too_many(path, size, bounds["maxProperties"]))
        for name in node.required:
            if name not in value:
                self.causes.append(required(_join(path, name)))
        if node.embedded:
            self._embedded(value, path)
        before = old if isinstance(old, dict) else {}
        for key, member in value.items():
            child = node.properties.get(key) or node.values
            if child is not None and (child.checked or not self.quick) and not child.name:
                self.check(child, member, before.get(key, UNSET), _join(path, key))

    def _embedded(self, value: Json, path: str) -> None:
        for name in ("apiVersion", "kind"):
            if name not in value:
                self.causes.append(required(_join(path, name)))
            elif not isinstance(value[name], str):
                self.causes.append(invalid(_join(path, name), value[name], "must be a string"))
            elif not value[name]:
                self.causes.append(invalid(_join(path, name), "", "must not be empty"))

    def _list(self, node: Node, value: list[Any], old: Any, path: str) -> None:
        size, bounds = len(value), node.bounds
        if size < bounds.get("minItems", 0):
            detail = f"{path} in body should have at least {bounds['minItems']} items"
            self.causes.append(invalid(path, size, detail))
        if size > bounds.get("maxItems", size):
            self.causes.append(too_many(path, size, bounds["maxItems"]))
        if bounds.get("uniqueItems") and any(True for _ in _repeated(value)):
            self.causes.append(invalid(path, "", f"{path} in body shouldn't contain duplicates"))
        if node.list_type == "set":
            for position in _repeated(value):
                self.causes.append(duplicate(f"{path}[{position}]", value[position]))
        elif node.list_type == "map":
            self._keyed_list(node, value, path)
        if node.items is not None and (node.items.checked or not self.quick):
            before = correlate(node, value, old)
            for position, item in enumerate(value):
                self.check(node.items, item, before[position], f"{path}[{position}]")

    def _keyed_list(self, node: Node, value: list[Any], path: str) -> None:
        for position, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                detail = "must be an object for an array of list-type map"
                self.causes.append(invalid(f"{path}[{position}]", item, detail))
                return
        keys = [{k: item[k] for k in node.map_keys if k in item} if item else {} for item in value]
        for position in _repeated(keys):
            self.causes.append(duplicate(f"{path}[{position}]", keys[position]))

    def _text(self, node: Node, value: str, path: str) -> None:
        bounds = node.bounds
        if len(value) < bounds.get("minLength", 0):
            detail = f"{path} in body should be at least {bounds['minLength']} chars long"
            self.causes.append(invalid(path, value, detail))
        if len(value) > bounds.get("maxLength", len(value)):
            self.causes.append(too_long(path, bounds["maxLength"]))
        pattern = bounds.get("pattern")
        if pattern and not found(pattern, value):
            self.causes.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        fmt = bounds.get("format")
        if fmt and node.type in ("", "string") and not is_well_formed(fmt, value):
            detail = f"{path} in body must be of type {fmt}: {json.dumps(value)}"
            self.causes.append(type_invalid(path, value, detail))

    def _number(self, node: Node, value: float, path: str) -> None:
        bounds = node.bounds
        if bounds.get("format") == "int32" and not -(2**31) <= value < 2**31:
            text = f"Checked value must be of type integer with format int32 in {path}"
            self.causes.append(invalid("<nil>", "", text))
        low, high = bounds.get("minimum"), bounds.get("maximum")
        if low is not None and (value < low or (bounds.get("exclusiveMinimum") and value == low)):
            words = "greater than" if bounds.get("exclusiveMinimum") else "greater than or equal to"
            self._out_of_range(value, words, low, path)
        if high is not None and (
            value > high or (bounds.get("exclusiveMaximum") and value == high)
        ):
            words = "less than" if bounds.get("exclusiveMaximum") else "less than or equal to"
            self._out_of_range(value, words, high, path)
        step = bounds.get("multipleOf")
        if step and not float(value / step).is_integer():
            detail = f"{path} in body should be a multiple of {_plain(step)}"
            self.causes.append(invalid(path, value, detail))

    def _out_of_range(self, value: float, words: str, limit: float, path: str) -> None:
        detail = f"{path} in body should be {words} {_plain(limit)}"
        self.causes.append(invalid(path, value, detail))

    def _enum(self, node: Node, value: Any, path: str) -> None:
        choices = node.bounds.get("enum")
        if choices is not None and not any(_same(value, choice) for choice in choices):
            shown = [v if isinstance(v, str) else json.dumps(v) for v in choices]
            self.causes.append(not_supported(path, value, shown))

    def _junctors(self, node: Node, value: Any, path: str) -> None:
        if node.any_of:
            self._any_of(node.any_of, value, path)
        if node.one_of:
            self._one_of(node.one_of, value, path)
        if node.all_of:
            self._all_of(node.all_of, value, path)
        if node.negated is not None and not _failures(node.negated, value, path):
            self._mismatch(path, "must not validate the schema (not)")

    def _any_of(self, choices: tuple[Node, ...], value: Any, path: str) -> None:
        failures = [_failures(choice, value, path) for choice in choices]
        if all(failures):
            self._mismatch(path, "must validate at least one schema (anyOf)")
            self.causes.extend(_fewest(failures))

    def _one_of(self, choices: tuple[Node, ...], value: Any, path: str) -> None:
        failures = [_failures(choice, value, path) for choice in choices]
        valid = failures.count([])
        if valid != 1:
            found = f"Found {valid} valid alternatives" if valid else "Found none valid"
            self._mismatch(path, f"must validate one and only one schema (oneOf). {found}")
        if not valid:
            self.causes.extend(_fewest(failures))

    def _all_of(self, choices: tuple[Node, ...], value: Any, path: str) -> None:
        failures = [_failures(choice, value, path) for choice in choices]
        for causes in failures:
            self.causes.extend(causes)
        if any(failures):
            none = ". None validated" if all(failures) else ""
            self._mismatch(path, f"must validate all the schemas (allOf){none}")

    def _mismatch(self, path: str, words: str) -> None:
        # Such a failure names its place in words only.
        self.causes.append(invalid("<nil>", "", f"{json.dumps(path)} {words}"))


def correlate(node: Node, value: list[Any], old: Any) -> list[Any]:
    """Return for each item of *value* the old item with the same key, or ``UNSET``."""
    if node.list_type != "map" or not isinstance(old, list):
        return [UNSET] * len(value)
    known = {_key_of(node, item): item for item in old}
    return [known.get(_key_of(node, item), UNSET) for item in value]


def _key_of(node: Node, item: Any) -> str:
    members = item if isinstance(item, dict) else {}
    return json.dumps([members.get(key) for key in node.map_keys])


def _failures(node: Node, value: Any, path: str) -> list[Cause]:
    checker = Checker([])
    checker.check(node, value, UNSET, path)
    return checker.causes


def _fewest(failures: list[list[Cause]]) -> list[Cause]:
    return min(failures, key=len)


def _has_type(node: Node, value: Any) -> bool:
    if value is None:
        return node.nullable or node.type == ""
    if node.type in ("integer", INT_OR_STRING) and isinstance(value, float):
        return value.is_integer()
    given = _JSON_TYPES[type(value)]
    if node.type == INT_OR_STRING:
        return given in ("integer", "string")
    return node.type in (given, "") or (node.type == "number" and given == "integer")


def _repeated(values: Iterable[Any]) -> Iterator[int]:
    """Return the positions at which a value occurs for the second time."""
    seen: dict[str, int] = {}
    for position, value in enumerate(values):
        key = json.dumps(value, sort_keys=True)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield position


def _same(value: Any, choice: Any) -> bool:
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
