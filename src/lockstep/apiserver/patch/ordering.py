"""The order of a list that two sides contribute to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

Key = Callable[[Any], Hashable]


def position_key(merge_key: str) -> Key:
    """Return how items are told apart: by the value of their merge key, or by themselves."""

    def key(item: Any) -> Hashable:
        value = item.get(merge_key) if merge_key and isinstance(item, dict) else item
        return (type(value).__name__, value) if isinstance(value, Hashable) else repr(value)

    return key


def in_order(merged: list[Any], wanted: list[Any], present: list[Any], key: Key) -> list[Any]:
    """Return merged items with those of the patch in its order, others where they stood.

    Args:
        merged: The items, in any order.
        wanted: The order of the patch.
        present: The order in which the object had its items.
        key: How items are told apart.
    """
    place = _places(wanted, key)
    stood = _places(present, key)
    ours = sorted((i for i in merged if key(i) in place), key=lambda item: place[key(item)])
    others = [item for item in merged if key(item) not in place]
    others.sort(key=lambda item: stood.get(key(item), len(stood)))
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(ours):
        before, after = stood.get(key(others[left])), stood.get(key(ours[right]))
        if before is not None and after is not None and before < after:
            result.append(others[left])
            left += 1
        else:
            result.append(ours[right])
            right += 1
    return [*result, *others[left:], *ours[right:]]


def _places(items: list[Any], key: Key) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for position, item in enumerate(items):
        places.setdefault(key(item), position)
    return places
