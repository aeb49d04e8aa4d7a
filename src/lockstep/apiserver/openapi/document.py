"""The OpenAPI v3 document of one group and version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.openapi.definition import Definition
from lockstep.apiserver.openapi.operations import paths_of
from lockstep.apiserver.schema.components import components, descriptions

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REF = "#/components/schemas/"
_GVK = "x-kubernetes-group-version-kind"


def document(definitions: Sequence[Definition]) -> Json:
    """Return the document of *definitions*, which share one group and version."""
    paths = {path: item for d in definitions for path, item in paths_of(d).items()}
    schemas: Json = {}
    for definition in definitions:
        if definition.schema is not None:
            schemas[definition.component] = _custom(definition, definition.schema)
            schemas[definition.list_component] = _custom_list(definition)
    _complete(schemas, [*_references(paths), *_references(list(schemas.values()))])
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _complete(schemas: Json, wanted: list[str]) -> None:
    """Add the built-in components that are *wanted*, and all that they refer to."""
    while wanted:
        name = wanted.pop()
        if name not in schemas and name in components():
            schemas[name] = _described(name)
            wanted.extend(_references(schemas[name]))


def _described(name: str) -> Json:
    """Return the built-in component called *name* with its descriptions."""
    prose = descriptions().get(name, {})
    schema = dict(components()[name])
    if "" in prose:
        schema["description"] = prose[""]
    if "properties" in schema:
        schema["properties"] = {
            key: {**part, "description": prose[key]} if key in prose else part
            for key, part in schema["properties"].items()
        }
    return schema


def _custom(definition: Definition, schema: Json) -> Json:
    shown = _with_embedded(schema)
    properties = {**shown.get("properties", {}), **_type_meta()}
    properties["metadata"] = _object_meta()
    return {"type": "object", **shown, "properties": properties, _GVK: [definition.gvk]}


def _custom_list(definition: Definition) -> Json:
    kind = definition.kind
    list_kind = definition.list_component.rpartition(".")[2]
    items = {"type": "array", "items": {"$ref": _REF + definition.component}}
    return {
        "type": "object",
        "description": f"{list_kind} is a list of {kind.kind}",
        "required": ["items"],
        "properties": {
            **_type_meta(),
            "items": {**items, "description": f"List of {kind.plural}."},
            "metadata": {"allOf": [{"$ref": f"{_REF}{_META}.ListMeta"}]},
        },
        _GVK: [{**definition.gvk, "kind": list_kind}],
    }


def _with_embedded(schema: Json) -> Json:
    """Return *schema* with the type and metadata of embedded resources spelled out."""
    shown = dict(schema)
    if "properties" in schema:
        shown["properties"] = {k: _with_embedded(v) for k, v in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            shown[key] = _with_embedded(schema[key])
    if schema.get("x-kubernetes-embedded-resource"):
        own = {**_type_meta(), "metadata": _object_meta()}
        shown["properties"] = {**shown.get("properties", {}), **own}
        shown["required"] = sorted({*schema.get("required", []), "apiVersion", "kind"})
    return shown


def _type_meta() -> Json:
    # Every kind has the same two, with the same words.
    status = _described(f"{_META}.Status")["properties"]
    return {name: status[name] for name in ("apiVersion", "kind")}


def _object_meta() -> Json:
    return {
        "allOf": [{"$ref": f"{_REF}{_META}.ObjectMeta"}],
        "description": "Standard object's metadata. More info: https://git.k8s.io/community/"
        "contributors/devel/sig-architecture/api-conventions.md#metadata",
    }


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    found = [name for value in node.values() for name in _references(value)]
    ref = node.get("$ref")
    return [*found, ref.removeprefix(_REF)] if isinstance(ref, str) else found
