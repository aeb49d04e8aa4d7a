"""From a patch request to the change it makes."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.api.wire import Json, encode
from lockstep.apiserver import status
from lockstep.apiserver.bodies import media_type, read_applied, read_patch
from lockstep.apiserver.handlers.call import APPLY, Call
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
from lockstep.apiserver.schema.causes import invalid
from lockstep.apiserver.schema.decode import conversion_error, go_value
from lockstep.apiserver.schema.go_order import in_go_order, paths_touched

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_FOR_BUILTIN = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
_UNDECODED = "error decoding patch: "
_FOR_CUSTOM = (JSON_PATCH, MERGE, APPLY)


def mutation(call: Call, kind: Type | None = None) -> Mutate:
    """Return what the patch in the body makes of an object, or of a part of type *kind*.

    Raises:
        StatusError: when the body is no patch of a type that the resource takes.
    """
    given, body = media_type(call.request), call.request.body
    if call.served.custom and given not in _FOR_CUSTOM:
        raise status.unsupported_media_type(_FOR_CUSTOM)
    if given not in _FOR_BUILTIN:
        raise status.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    match given:
        case "application/json-patch+json":
            return lambda live: json_patch(live, read_patch(body, prefix=_UNDECODED))
        case "application/merge-patch+json":
            return lambda live: merge_patch(live, read_patch(body, prefix=_UNDECODED))
    return lambda live: strategic_merge(live, read_patch(body), kind or call.served.type)


def read_configuration(call: Call) -> Json:
    """Return the configuration in the body of an apply.

    Raises:
        StatusError: when it is none for this path.
    """
    applied = read_applied(call.request)
    kind = call.served.kind
    given = applied.get("apiVersion") or "", applied.get("kind") or ""
    if not call.route.subresource and given != (kind.api_version, kind.kind):
        version = given[0] if "/" in given[0] else f"/{given[0]}" if given[0] else "/"
        raise status.bad_request(f"invalid object type: {version}, Kind={given[1]}")
    meta = applied.get("metadata")
    if not isinstance(meta, dict):
        meta = applied["metadata"] = {}
    name = meta.setdefault("name", call.route.name)
    if isinstance(name, str) and name != call.route.name:
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


def unfit(call: Call, why: str, outcome: Json) -> status.StatusError:
    """Return the answer to a patch whose outcome cannot be read as its kind."""
    patch, node = read_patch(call.request.body), call.served.schema.node
    given = media_type(call.request)
    if given == STRATEGIC:
        why = conversion_error(node, patch) or why
        return status.invalid("", "", "", [invalid("patch", go_value(patch), why)])
    touched = paths_touched(patch) if given == JSON_PATCH else patch
    shown = encode(in_go_order(outcome, node, touched)).decode()
    return status.invalid("", "", "", [invalid("patch", shown, why)])
