"""Whether a schema may define a custom resource: the rules of structural schemas.

A structural schema says the type of every field once, outside of alternatives; only then can
objects be pruned and defaulted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.schema import components
from lockstep.apiserver.schema.causes import (
    Cause,
    Reason,
    forbidden,
    invalid,
    not_supported,
    required,
)
from lockstep.apiserver.schema.cel import problems, undefined_fields
from lockstep.apiserver.schema.check import Checker
from lockstep.apiserver.schema.node import UNSET, structural
from lockstep.apiserver.schema.patterns import compiled
from lockstep.apiserver.schema.prune import prune

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_JUNCTORS = ("allOf", "anyOf", "oneOf")
# What an alternative must leave to the schema around it, and what it would have to be instead.
_OUTSIDE = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_INT_OR_STRING: list[Json] = [{"type": "integer"}, {"type": "string"}]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_EITHER = "x-kubernetes-int-or-string"
_LIST_TYPE = "x-kubernetes-list-type"
_KEYS = "x-kubernetes-list-map-keys"
_MAP_TYPE = "x-kubernetes-map-type"
_RULES = "x-kubernetes-validations"
_OF_ROOT = ("apiVersion", "kind", "metadata")
"""Properties that every object has, stated or not."""


def schema_problems(schema: Json, path: str) -> list[Cause]:
    """Return why *schema* may not define a custom resource; nothing when it may."""
    causes = [*_root(schema, path), *_walk(schema, path, "root")]
    if not causes:
        causes = _defaults(schema, path)
    return causes


def _root(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if schema.get("type") and schema["type"] != "object":
        yield invalid(f"{path}.type", schema["type"], "must be object at the root")
    if schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    for part, name in _alternatives(schema):
        yield from _complete(part, schema, path, f"{path}.{name}")
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    allowed = {"type", "properties"}
    inner = set(metadata.get("properties") or ()) - {"name", "generateName"}
    if set(metadata) - allowed - {"description"} or inner:
        text = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield forbidden(f"{path}.properties[metadata]", text)


def _walk(schema: Json, path: str, level: str) -> Iterator[Cause]:
    yield from _supported(schema, path)
    yield from _type(schema, path, level)
    yield from _extensions(schema, path)
    yield from _list(schema, path)
    yield from _values(schema, path)
    yield from _rules(schema, path)
    for name, part in (schema.get("properties") or {}).items():
        yield from _walk(part, f"{path}.properties[{name}]", "field")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _walk(schema["additionalProperties"], f"{path}.additionalProperties", "field")
    if isinstance(schema.get("items"), dict):
        yield from _walk(schema["items"], f"{path}.items", "item")


def _supported(schema: Json, path: str) -> Iterator[Cause]:
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        text = "items must be a schema object and not an array"
        yield forbidden(f"{path}.items", text)
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)
    if schema.get("properties") and schema.get("additionalProperties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", text)


def _type(schema: Json, path: str, level: str) -> Iterator[Cause]:
    given = schema.get("type")
    words = {
        "root": "must not be empty at the root",
        "item": "must not be empty for specified array items",
        "field": "must not be empty for specified object fields",
    }
    if given == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(f"{path}.type", text)
    if not given:
        if not any(schema.get(name) for name in (_EITHER, _PRESERVE, "$ref")):
            yield required(f"{path}.type", words[level])
    elif given not in _TYPES:
        yield not_supported(f"{path}.type", given, _TYPES)
    if given == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")


def _extensions(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    if schema.get(_EITHER):
        text = f"must be false if {_EITHER} is true"
        for other in (_PRESERVE, _EMBEDDED):
            if schema.get(other):
                yield invalid(f"{path}.{other}", True, text)
    if schema.get(_EMBEDDED):
        text = f"must be object if {_EMBEDDED} is true"
        if not schema.get("type"):
            yield required(f"{path}.type", text)
        elif schema["type"] != "object":
            yield invalid(f"{path}.type", schema["type"], text)
        if not schema.get(_PRESERVE) and not schema.get("properties"):
            text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
            yield required(f"{path}.properties", text)
    yield from _needs_type(schema, _MAP_TYPE, "object", ("atomic", "granular"), path)


def _needs_type(
    schema: Json, name: str, wanted: str, choices: tuple[str, ...], path: str
) -> Iterator[Cause]:
    given = schema.get(name)
    if given is None:
        return
    text = f"must be {wanted} if {name} is specified"
    if not schema.get("type"):
        yield required(f"{path}.type", text)
    elif schema["type"] != wanted:
        yield invalid(f"{path}.type", schema["type"], text)
    if given not in choices:
        yield not_supported(f"{path}.{name}", given, choices)


def _list(schema: Json, path: str) -> Iterator[Cause]:
    yield from _needs_type(schema, _LIST_TYPE, "array", ("atomic", "set", "map"), path)
    sort, keys = schema.get(_LIST_TYPE), schema.get(_KEYS) or []
    items: Json = schema["items"] if isinstance(schema.get("items"), dict) else {}
    if keys and sort != "map":
        text = f"must be map if {_KEYS} is non-empty"
        at = f"{path}.{_LIST_TYPE}"
        yield required(at, text) if sort is None else invalid(at, sort, text)
    if sort == "set" and items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        text = f"must be atomic as item of a list with {_LIST_TYPE}=set"
        yield invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), text)
    if sort == "map":
        yield from _keyed(items, keys, path)


def _keyed(items: Json, keys: list[str], path: str) -> Iterator[Cause]:
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    if not items:
        yield required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        text = f"must be object if parent array's {_LIST_TYPE} is map"
        yield invalid(f"{path}.items.type", items.get("type", ""), text)
        return
    properties = items.get("properties") or {}
    for key in keys:
        part = properties.get(key)
        if part is None:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.{_KEYS}", keys, text)
        elif part.get("type") in ("array", "object"):
            text = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield invalid(f"{path}.items.properties[{key}].type", items["type"], text)
        elif "default" not in part and key not in (items.get("required") or ()):
            text = (
                f"this property is in {_KEYS}, so it must have a default or be a required property"
            )
            yield required(f"{path}.items.properties[{key}].default", text)
    if len(set(keys)) != len(keys):
        yield invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")


def _values(schema: Json, path: str) -> Iterator[Cause]:
    if pattern := schema.get("pattern"):
        try:
            compiled(pattern)
        except ValueError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", pattern, text)
    for part, name in _alternatives(schema):
        if not (schema.get(_EITHER) and _says_either(schema, part)):
            yield from _nested(part, f"{path}.{name}")


def _alternatives(schema: Json) -> Iterator[tuple[Json, str]]:
    for name in _JUNCTORS:
        for position, part in enumerate(schema.get(name) or ()):
            yield part, f"{name}[{position}]"
    if schema.get("not"):
        yield schema["not"], "not"


def _says_either(schema: Json, part: Json) -> bool:
    """Whether an alternative only repeats that an integer or a text may stand here."""
    if schema.get("anyOf") == _INT_OR_STRING and part in _INT_OR_STRING:
        return True
    firsts = (schema.get("allOf") or ())[:1]
    return part in firsts and bool(part.get("anyOf") == _INT_OR_STRING)


def _nested(part: Json, path: str) -> Iterator[Cause]:
    for name, text in _OUTSIDE.items():
        if part.get(name):
            yield forbidden(f"{path}.{name}", text)
    if "metadata" in (part.get("properties") or {}):
        text = "must not be specified in a nested context"
        yield forbidden(f"{path}.properties[metadata]", text)
    for name, inner in (part.get("properties") or {}).items():
        yield from _nested(inner, f"{path}.properties[{name}]")
    if isinstance(part.get("items"), dict):
        yield from _nested(part["items"], f"{path}.items")
    yield from _values(part, path)


def _complete(part: Json, around: Json | None, path: str, defined_in: str) -> Iterator[Cause]:
    """Require that what an alternative of the root restricts is defined outside of it."""
    if around is None:
        yield required(path, f"because it is defined in {defined_in}")
        return
    for inner, name in _alternatives(part):
        yield from _complete(inner, around, path, f"{defined_in}.{name}")
    known = around.get("properties") or {}
    for name, inner in (part.get("properties") or {}).items():
        at = f"properties[{name}]"
        yield from _complete(inner, known.get(name), f"{path}.{at}", f"{defined_in}.{at}")
    if isinstance(part.get("items"), dict):
        inside = f"{defined_in}.items"
        yield from _complete(part["items"], around.get("items"), f"{path}.items", inside)


def _rules(schema: Json, path: str) -> Iterator[Cause]:
    for position, rule in enumerate(schema.get(_RULES) or ()):
        at = f"{path}.{_RULES}[{position}]"
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            yield required(f"{at}.rule", "rule is not specified")
            continue
        if "\n" in message.strip():
            yield invalid(f"{at}.message", message, "must not contain line breaks")
        elif "\n" in text and not message.strip():
            detail = "message must be specified if rule contains line breaks"
            yield required(f"{at}.message", detail)
        for problem in [*problems(rule), *_undefined(schema, text)]:
            yield invalid(f"{at}.rule", rule, problem)


def _undefined(schema: Json, rule: str) -> list[str]:
    """Return what is wrong with a rule that reads fields which the object cannot have."""
    open_ = (_PRESERVE, _EMBEDDED, "additionalProperties")
    if schema.get("type") != "object" or any(schema.get(name) for name in open_):
        return []
    known = (*_OF_ROOT, *(schema.get("properties") or ()))
    return [
        f"compilation failed: ERROR: undefined field '{name}'"
        for name in undefined_fields(rule, known)
    ]


def _defaults(schema: Json, path: str) -> list[Cause]:
    """Require that every default is itself a value that the schema accepts and keeps whole."""
    return [
        cause
        for part, at in _parts(schema, path)
        if "default" in part
        for cause in _default(part, f"{at}.default")
    ]


def _default(part: Json, path: str) -> list[Cause]:
    value: Any = part["default"]
    holder = {"type": "object", "properties": {"default": part}}
    node = structural(holder, components.node(components.OBJECT_META)).properties["default"]
    unknown: list[str] = []
    if isinstance(value, dict | list):
        prune(node, copy.deepcopy(value), "", unknown)
    if unknown:
        return [invalid(path, value, "must not have unknown fields")]
    checker = Checker([])
    checker.check(node, value, UNSET, "")
    # What is said is about the default alone, and keyed lists in it do not matter.
    return [
        Cause(f"{path}.{cause.field}" if cause.field else path, cause.reason, cause.message)
        for cause in checker.causes
        if cause.reason != Reason.DUPLICATE
    ]


def _parts(schema: Json, path: str) -> Iterator[tuple[Json, str]]:
    for name, part in (schema.get("properties") or {}).items():
        yield part, f"{path}.properties[{name}]"
        yield from _parts(part, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield schema[name], f"{path}.{name}"
            yield from _parts(schema[name], f"{path}.{name}")
