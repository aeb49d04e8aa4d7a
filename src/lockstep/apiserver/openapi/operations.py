"""The paths of a resource and what can be done there."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.subresources import Subresource, subresources_of
from lockstep.apiserver.openapi.definition import Definition

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REF = "#/components/schemas/"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)
_STRATEGIC = "application/strategic-merge-patch+json"

_TEXT: Json = {"type": "string", "uniqueItems": True}
_FLAG: Json = {"type": "boolean", "uniqueItems": True}
_COUNT: Json = {"type": "integer", "uniqueItems": True}
_PARAMETERS: dict[str, tuple[Json, str]] = {
    "allowWatchBookmarks": (_FLAG, "Whether the watch may send bookmarks."),
    "continue": (_TEXT, "Token of the next page, from the answer with the page before."),
    "dryRun": (_TEXT, "With All, nothing is stored."),
    "fieldManager": (_TEXT, "Name of the actor that makes the change."),
    "fieldSelector": (_TEXT, "Restricts the answer by fields of the objects."),
    "fieldValidation": (_TEXT, "What unknown fields do: Ignore, Warn or Strict."),
    "force": (_FLAG, "Whether an apply takes over the fields that others own."),
    "gracePeriodSeconds": (_COUNT, "Seconds before the object is deleted; zero means at once."),
    "labelSelector": (_TEXT, "Restricts the answer by labels of the objects."),
    "limit": (_COUNT, "Most objects in one answer."),
    "orphanDependents": (_FLAG, "Deprecated; see propagationPolicy."),
    "propagationPolicy": (_TEXT, "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": (_TEXT, "How recent the answer must be."),
    "resourceVersionMatch": (_TEXT, "How resourceVersion is applied."),
    "sendInitialEvents": (_FLAG, "Whether the watch begins with the present objects."),
    "timeoutSeconds": (_COUNT, "Seconds after which the call ends."),
    "watch": (_FLAG, "Whether to follow the changes instead of listing."),
}
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
# Verb to method, action in the documents, query parameters, and verb in operation names.
_VERBS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "list": ("get", "list", _LIST, "list"),
    "create": ("post", "post", _WRITE, "create"),
    "deletecollection": ("delete", "deletecollection", (*_DELETE, *_LIST), "deleteCollection"),
    "get": ("get", "get", (), "read"),
    "update": ("put", "put", _WRITE, "replace"),
    "patch": ("patch", "patch", (*_WRITE, "force"), "patch"),
    "delete": ("delete", "delete", _DELETE, "delete"),
}
_ON_COLLECTION = ("list", "create", "deletecollection")
_ON_OBJECT = ("get", "update", "patch", "delete")


def paths_of(definition: Definition) -> Json:
    """Return the paths of a resource with their operations."""
    kind = definition.kind
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{scope}/{kind.plural}"
    own = Subresource(kind.verbs)
    paths = {collection: _path(definition, _ON_COLLECTION, own, "")}
    if kind.namespaced and "list" in kind.verbs:
        everywhere = _path(definition, ("list",), own, "")
        everywhere.pop("parameters", None)
        paths[f"{root}/{kind.plural}"] = everywhere
    if "get" in kind.verbs:
        paths[f"{collection}/{{name}}"] = _path(definition, _ON_OBJECT, own, "", named=True)
    for name, sub in subresources_of(kind):
        below = _path(definition, ("create", *_ON_OBJECT), sub, name, named=True)
        paths[f"{collection}/{{name}}/{name}"] = below
    return paths


def _path(
    definition: Definition,
    verbs: tuple[str, ...],
    allowed: Subresource,
    subresource: str,
    *,
    named: bool = False,
) -> Json:
    path: Json = {}
    parameters = [_in_path("name", f"name of the {definition.kind.kind}")] if named else []
    if definition.kind.namespaced:
        parameters.append(_in_path("namespace", "namespace of the object"))
    if parameters:
        path["parameters"] = parameters
    for verb in verbs:
        if verb in allowed.verbs:
            method = _VERBS[verb][0]
            path[method] = _operation(definition, verb, allowed, subresource)
    return path


def _operation(definition: Definition, verb: str, sub: Subresource, subresource: str) -> Json:
    kind = definition.kind
    _, action, parameters, name = _VERBS[verb]
    group = kind.group.split(".")[0].capitalize() if kind.group else "Core"
    scope = "Namespaced" if kind.namespaced else ""
    operation_id = f"{name}{group}{kind.version.capitalize()}{scope}{kind.kind}"
    answer = _answer_component(definition, verb, sub)
    operation: Json = {
        "description": f"{name} {subresource or kind.kind}".lower(),
        "operationId": f"{operation_id}{subresource.capitalize()}",
        "responses": {
            "200": {"description": "OK", "content": _content(answer, ("application/json",))},
            "401": {"description": "Unauthorized"},
        },
        "tags": [f"{group.lower()}_{kind.version}"],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _speaks(definition, sub),
    }
    if parameters:
        operation["parameters"] = [_in_query(p) for p in parameters]
    if body := _body(definition, verb, answer):
        operation["requestBody"] = body
    return operation


def _speaks(definition: Definition, sub: Subresource) -> Json:
    if sub.group:
        return {"group": sub.group, "kind": sub.kind, "version": sub.version}
    return {**definition.gvk, "kind": sub.kind} if sub.kind else definition.gvk


def _answer_component(definition: Definition, verb: str, sub: Subresource) -> str:
    if verb == "list":
        return definition.list_component
    if verb in ("delete", "deletecollection"):
        return f"{_META}.Status"
    if sub.kind == "Binding":
        return "io.k8s.api.core.v1.Binding"
    if sub.group:
        return f"io.k8s.api.{sub.group.split('.')[0]}.{sub.version}.{sub.kind}"
    return definition.component


def _body(definition: Definition, verb: str, component: str) -> Json | None:
    if verb == "patch":
        types = (*_PATCHES, _STRATEGIC) if definition.kind.schema_name else _PATCHES
        return {"content": _content(f"{_META}.Patch", types), "required": True}
    if verb in ("create", "update"):
        return {"content": _content(component, ("*/*",)), "required": True}
    if verb in ("delete", "deletecollection"):
        return {"content": _content(f"{_META}.DeleteOptions", ("*/*",))}
    return None


def _content(component: str, types: tuple[str, ...]) -> Json:
    return {media: {"schema": {"$ref": _REF + component}} for media in types}


def _in_path(name: str, description: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": _TEXT,
    }


def _in_query(name: str) -> Json:
    schema, description = _PARAMETERS[name]
    return {"name": name, "in": "query", "description": description, "schema": schema}
