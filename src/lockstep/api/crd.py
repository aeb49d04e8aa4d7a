"""CRD manifests, generated from the kinds.

The structs are the only place where a field is written down; its description, bounds and default
reach the server and ``kubectl explain`` from there. A field is described in its annotation, or by
the text below it.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from functools import cache
from itertools import pairwise
from typing import Any, cast

import msgspec
from msgspec import inspect as shapes

from lockstep import __version__
from lockstep.api.field_rules import LIST_KEYS, RULES
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import SCHEMA_ANNOTATION
from lockstep.api.presentation import PRESENTATIONS, Presentation
from lockstep.api.resource import Resource
from lockstep.api.wire import Json


def manifests() -> list[Json]:
    """Return the CRD of every kind, as plain objects."""
    return [_manifest(shown) for shown in PRESENTATIONS]


def to_yaml() -> str:
    """Return every CRD as one YAML stream."""
    import yaml

    return yaml.safe_dump_all(manifests(), sort_keys=False, width=100)


@cache
def schema(kind: str) -> Json:
    """Return the structural schema of our kind called *kind*.

    Raises:
        KeyError: when it is not one of ours.
    """
    by_kind = {shown.resource.kind: shown.resource for shown in PRESENTATIONS}
    return _schema_of(by_kind[kind])


def _manifest(shown: Presentation) -> Json:
    res = shown.resource
    version: Json = {
        "name": res.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema(res.kind)},
        "additionalPrinterColumns": [_column(*column) for column in shown.columns],
    }
    if "status" in schema(res.kind)["properties"]:
        version["subresources"] = {"status": {}}
    spec: Json = {
        "group": res.group,
        "scope": "Namespaced" if res.namespaced else "Cluster",
        "names": {
            "plural": res.plural,
            "singular": res.kind.lower(),
            "kind": res.kind,
            "listKind": f"{res.kind}List",
            "categories": ["lockstep"],
            **({"shortNames": list(shown.short_names)} if shown.short_names else {}),
        },
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{res.plural}.{res.group}",
            "annotations": {SCHEMA_ANNOTATION: f"{__version__}+{_sum(spec)}"},
        },
        "spec": spec,
    }


def _sum(spec: Json) -> str:
    return hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:8]


def outdated(found: str, ours: str) -> bool:
    """Return whether a CRD that bears *found* is to become the one that bears *ours*.

    One of an older version is, and one of the same version that says something else; one of a
    newer version never is. What bears nothing comes from before there was such a mark.
    """
    if found == ours:
        return False
    return _release(found) <= _release(ours)


def _release(mark: str) -> tuple[int, ...]:
    numbers = mark.partition("+")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdecimal())


def _column(name: str, type_: str, path: str) -> Json:
    column: Json = {"name": name.strip("()"), "type": type_, "jsonPath": path}
    if name.startswith("("):
        column["priority"] = 1
    return column


def _schema_of(res: Resource[Any]) -> Json:
    built = _struct(res.type)
    properties = built["properties"]
    properties["metadata"] = {"type": "object"}
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}
    built["required"] = [n for n in built.get("required", []) if n != "metadata"]
    if not built["required"]:
        del built["required"]
    return built


def _struct(type_: type[msgspec.Struct]) -> Json:
    built: Json = {"type": "object"}
    if doc := (inspect.getdoc(type_) or "").split("\n\n")[0].replace("\n", " "):
        built["description"] = doc
    properties: Json = {}
    required: list[str] = []
    info = cast(shapes.StructType, shapes.type_info(type_))
    words = _described(type_)
    for f in info.fields:
        properties[f.encode_name] = _with_default(_of(f.type) | words.get(f.name, {}), f)
        if f.required:
            required.append(f.encode_name)
    if properties:
        # A server drops an empty one, and then nothing is ever as it was applied.
        built["properties"] = properties
    if required:
        built["required"] = required
    if rules := RULES.get(type_):
        built["x-kubernetes-validations"] = [rule.as_json() for rule in rules]
    return built


def _described(type_: type) -> dict[str, Json]:
    """Return the descriptions of a struct's fields: the texts that stand below them."""
    fields = _classes(type_.__module__)[type_.__name__].body
    return {
        field.target.id: {"description": " ".join(text.split())}
        for field, below in pairwise(fields)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and (text := ast.literal_eval(below.value))
    }


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}


def _with_default(built: Json, f: shapes.Field) -> Json:
    default = f.default
    if isinstance(default, str | int | bool) and default != "":
        return {**built, "default": default}
    return built


def _of(type_: shapes.Type) -> Json:
    if isinstance(type_, shapes.Metadata):
        built = _of(type_.type)
        extra = type_.extra_json_schema or {}
        return {
            **built,
            **({"description": extra["description"]} if "description" in extra else {}),
        }
    if isinstance(type_, shapes.UnionType):
        return _union([t for t in type_.types if not isinstance(t, shapes.NoneType)])
    if isinstance(type_, shapes.StructType):
        if type_.cls is ObjectMeta:
            return {"type": "object"}
        return _struct(type_.cls)
    if isinstance(type_, shapes.ListType):
        return _list(type_)
    if isinstance(type_, shapes.DictType):
        return _dict(type_)
    return _scalar(type_)


def _union(types: list[shapes.Type]) -> Json:
    if len(types) == 1:
        return _of(types[0])
    # The only wider union among the kinds is a quantity; some must not be negative.
    bounds = {key: value for one in types for key, value in _scalar(one).items() if key != "type"}
    return {"x-kubernetes-int-or-string": True, **bounds}


def _list(type_: shapes.ListType) -> Json:
    built: Json = {"type": "array", "items": _of(type_.item_type)}
    if type_.min_length is not None:
        built["minItems"] = type_.min_length
    if type_.max_length is not None:
        built["maxItems"] = type_.max_length
    item = type_.item_type
    if isinstance(item, shapes.StructType) and (key := LIST_KEYS.get(item.cls)):
        built |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return built


def _dict(type_: shapes.DictType) -> Json:
    if isinstance(type_.value_type, shapes.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _of(type_.value_type)}


def _scalar(type_: shapes.Type) -> Json:
    if isinstance(type_, shapes.LiteralType):
        return {"type": "string", "enum": list(type_.values)}
    if isinstance(type_, shapes.BoolType):
        return {"type": "boolean"}
    if isinstance(type_, shapes.IntType | shapes.FloatType):
        bounds = {"minimum": type_.ge, "maximum": type_.le}
        name = "integer" if isinstance(type_, shapes.IntType) else "number"
        return {"type": name, **{k: v for k, v in bounds.items() if v is not None}}
    if isinstance(type_, shapes.StrType):
        limits = {
            "minLength": type_.min_length,
            "maxLength": type_.max_length,
            "pattern": type_.pattern,
        }
        return {"type": "string", **{k: v for k, v in limits.items() if v is not None}}
    raise TypeError(f"no structural schema for {type_}")
