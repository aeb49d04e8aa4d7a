"""Fields that a JSON object has twice: the last one counts, and strict servers refuse them."""

from __future__ import annotations

import json
from typing import Any

from lockstep.api.wire import encode

_KEY_ENDS = b'":'


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, in their order."""


def doubled_fields(body: bytes, value: Any) -> list[str]:
    """Return the paths of the fields that *body*, which holds *value*, has more than once.

    What is encoded anew has every field once, so the same number of keys means that none is
    doubled; only a body with blanks before colons, or with doubled fields, is looked at closely.
    """
    if body.count(_KEY_ENDS) == encode(value).count(_KEY_ENDS):
        return []
    found: list[str] = []
    try:
        _look(json.loads(body, object_pairs_hook=_Pairs), "", found)
    except ValueError:
        return []
    return list(dict.fromkeys(found))


def _look(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen = set()
        for name, member in value:
            below = f"{path}.{name}" if path else name
            if name in seen:
                found.append(below)
            seen.add(name)
            _look(member, below, found)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _look(item, f"{path}[{position}]", found)
