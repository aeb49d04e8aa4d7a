"""From a patch request to the change it makes."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.apiserver import status
from lockstep.apiserver.bodies import from_yaml, media_type, read_json
from lockstep.apiserver.handlers.call import Call, Json
from lockstep.apiserver.objects import Mutate
from lockstep.apiserver.patch import (
    Type,
    Writer,
    apply,
    json_patch,
    merge_patch,
    relevant,
    strategic_merge,
)

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_FOR_BUILTIN = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
_FOR_CUSTOM = (JSON_PATCH, MERGE, APPLY)


def mutation(call: Call, kind: Type | None = None) -> Mutate:
    """Return what the patch in the body makes of an object, or of a part of type *kind*.

    Raises:
        StatusError: when the body is no patch of a type that the resource takes.
    """
    given = media_type(call.request)
    if given not in _FOR_BUILTIN or (given == STRATEGIC and call.served.custom):
        known = _FOR_CUSTOM if call.served.custom else _FOR_BUILTIN
        raise status.unsupported_media_type(given, known)
    patch = read_json(call.request.body)
    match given:
        case "application/json-patch+json":
            return lambda live: json_patch(live, patch)
        case "application/merge-patch+json":
            return lambda live: merge_patch(live, patch)
    return lambda live: strategic_merge(live, patch, kind or call.served.type)


def read_applied(call: Call) -> Json:
    """Return the configuration in the body of an apply.

    Raises:
        StatusError: when it is none for this path, or the request names no manager.
    """
    if not call.request.query.get("fieldManager"):
        raise status.invalid_options("fieldManager", "is required for apply patch")
    applied = from_yaml(call.request.body)
    meta = applied.get("metadata")
    if not isinstance(meta, dict):
        meta = applied["metadata"] = {}
    name = meta.setdefault("name", call.route.name)
    if name != call.route.name:
        raise status.bad_request(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({call.route.name})"
        )
    namespace = meta.get("namespace")
    if call.served.kind.namespaced and namespace and namespace != call.route.namespace:
        raise status.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return applied


def application(call: Call, applied: Json, now: float) -> Callable[[Json | None], Json]:
    """Return what applying *applied* makes of an object, or of none."""
    kind = call.served.kind
    options = call.options()
    by = Writer(options.manager, kind.api_version, now, call.route.subresource)
    stated = relevant(applied, call.route.subresource, has_status=kind.has_status)
    return lambda live: apply(live, stated, call.served.type, by, force=options.force)
