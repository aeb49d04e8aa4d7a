"""JSON merge patches between two trees."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def difference(old: Json, new: Json) -> Json:
    """Return the merge patch that turns *old* into *new*; what is gone becomes null."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := difference(before, value):
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
