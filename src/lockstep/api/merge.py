"""JSON merge patches between two trees."""

from __future__ import annotations

from lockstep.api.wire import Json


def merged(tree: Json, patch: Json) -> Json:
    """Return *tree* with a merge patch; null takes a field away."""
    found = {key: value for key, value in tree.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            before = tree.get(key)
            found[key] = merged(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            found[key] = value
    return found


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
