"""From a patch request to the change it makes."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver import status
from lockstep.apiserver.bodies import media_type, read_json
from lockstep.apiserver.handlers.call import Call, Json
from lockstep.apiserver.objects import Mutate

MERGE = "application/merge-patch+json"
_KNOWN = (MERGE,)


def mutation(call: Call) -> Mutate:
    """Return what the patch in the body makes of an object.

    Raises:
        StatusError: when the body is no patch of a known type.
    """
    kind = media_type(call.request)
    if kind == MERGE:
        patch = read_json(call.request.body)
        return lambda live: merge(live, patch)
    raise status.unsupported_media_type(kind, _KNOWN)


def merge(live: Any, patch: Any) -> Json:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
