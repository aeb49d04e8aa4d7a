"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.go_json import type_name
from lockstep.apiserver.patch.errors import malformed


def merge_patch(doc: Json, patch: Any) -> Json:
    """Return the document with the patch merged in; neither of the two is changed.

    Raises:
        PatchError: The patch is not an object.
    """
    if not isinstance(patch, dict):
        given = type_name(patch)
        raise malformed(
            f"error decoding patch: json: cannot unmarshal {given} into Go value of type "
            "map[string]interface {}"
        )
    return _merged(doc, patch)


def _merged(target: Any, patch: Json) -> Json:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value)
        else:
            result[key] = value
    return result
