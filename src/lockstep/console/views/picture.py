"""What a browser sees of one topic, and how to tell it what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.api.wire import Json


@dataclass(frozen=True, slots=True)
class Picture:
    """Rows by key in their order, and facts about the whole: counts, the object of a page."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    order: Sequence[str] = ()
    rows: Mapping[str, Json] = field(default_factory=dict)


EMPTY = Picture()


def fields(one: Any, names: str, **renamed: str) -> Json:
    """Return some fields of an object as the page names them.

    *names* lists the fields that keep their names, in camel case; *renamed* gives the others,
    by the page's name.
    """
    parts = (name.split("_") for name in names.split())
    kept = {
        first + "".join(map(str.capitalize, rest)): "_".join([first, *rest])
        for first, *rest in parts
    }
    return {shown: getattr(one, name) for shown, name in (kept | renamed).items()}


def delta(before: Picture, after: Picture) -> Json:
    """Return what makes *after* out of *before*; empty where they are alike.

    ``facts`` holds those that changed, None for those that went; ``order`` stands where it
    changed; ``rows`` holds rows that are new or changed. Rows outside the order are gone.
    """
    changed: Json = {}
    facts = {k: v for k, v in after.facts.items() if k not in before.facts or before.facts[k] != v}
    facts |= {key: None for key in before.facts if key not in after.facts}
    if facts:
        changed["facts"] = facts
    if list(before.order) != list(after.order):
        changed["order"] = list(after.order)
    rows = {key: row for key, row in after.rows.items() if before.rows.get(key) != row}
    if rows:
        changed["rows"] = rows
    return changed
