"""How parts of objects look in the cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = dict[str, Any]
Cells = list[Any]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, and where its description is found."""

    name: str
    about: str = ""
    """The description, or ``COMPONENT#property`` of the built-in schemas."""
    type: str = "string"
    format: str = ""
    priority: int = 0


def wide(name: str, about: str, type_: str = "string") -> Column:
    """Return a column that is shown only where there is room."""
    return Column(name, about, type_, priority=1)


_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
NAME = Column("Name", f"{_META}#name", format="name")
AGE = Column("Age", f"{_META}#creationTimestamp")
CONTAINERS = wide("Containers", "Names of each container in the template.")
IMAGES = wide("Images", "Images referenced by each container in the template.")

Row = Callable[[Json, float], Cells]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind, and what they hold for one object at one time."""

    columns: tuple[Column, ...]
    row: Row


def at(obj: Any, path: str, unset: Any = None) -> Any:
    """Return what stands at a dotted *path* in *obj*, or *unset*."""
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
        if obj is None:
            return unset
    return obj


def name_of(obj: Json) -> str:
    """Return the name of *obj*."""
    return str(at(obj, "metadata.name", ""))


def since(text: str | None, now: float) -> str:
    """Return how long ago the time *text* was."""
    if not text:
        return UNKNOWN
    moment = seconds(text)
    return "<invalid>" if moment is None else human_duration(now - moment)


def age(obj: Json, now: float) -> str:
    """Return how old *obj* is."""
    return since(at(obj, "metadata.creationTimestamp"), now)


def seconds(text: str) -> float | None:
    """Return the time *text* in seconds since the epoch, or nothing where it is no time."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def human_duration(length: float) -> str:
    """Return *length* seconds in the two largest units that matter."""
    whole = int(length)
    if whole < -1:
        return "<invalid>"
    if whole <= 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    for limit, unit, rest in (
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), None),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), None),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (730 * _DAY, (_DAY, "d"), None),
        (2920 * _DAY, (365 * _DAY, "y"), (_DAY, "d")),
    ):
        if whole < limit:
            return _in_units(whole, unit, rest)
    return f"{whole // (365 * _DAY)}y"


def _in_units(whole: int, unit: tuple[int, str], rest: tuple[int, str] | None) -> str:
    size, sign = unit
    shown = f"{whole // size}{sign}"
    left = whole % size // rest[0] if rest else 0
    return f"{shown}{left}{rest[1]}" if rest and left else shown


def labels(given: Json | None) -> str:
    """Return labels as ``a=b,c=d``."""
    return ",".join(f"{k}={v}" for k, v in sorted((given or {}).items())) or NONE


def selector(given: Json | None) -> str:
    """Return a label selector as people write it."""
    if given is None:
        return NONE
    requirements = [(k, f"{k}={v}") for k, v in (given.get("matchLabels") or {}).items()]
    for part in given.get("matchExpressions") or ():
        requirements.append((part.get("key", ""), _expression(part)))
    return ",".join(text for _, text in sorted(requirements)) or NONE


def _expression(part: Json) -> str:
    key, values = part.get("key", ""), ",".join(sorted(part.get("values") or ()))
    forms = {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }
    return str(forms.get(part.get("operator", ""), "<error>"))


def containers_of(template: Any) -> tuple[str, str]:
    """Return the names and the images of the containers of a pod template."""
    containers = at(template, "spec.containers", [])
    names = ",".join(c.get("name", "") for c in containers)
    return names, ",".join(c.get("image", "") for c in containers)


def first(items: Sequence[str], most: int, more: int | None = None) -> str:
    """Return at most *most* of *items*, and how many more there are."""
    total = len(items) if more is None else more
    shown = ",".join(items[:most])
    return f"{shown} + {total - most} more..." if total > most else shown


def condition(obj: Json, type_: str) -> Json | None:
    """Return the condition of that type, if *obj* has it."""
    conditions: Iterable[Json] = at(obj, "status.conditions", [])
    return next((c for c in conditions if c.get("type") == type_), None)


def is_true(obj: Json, type_: str) -> bool:
    """Whether the condition of that type holds."""
    found = condition(obj, type_)
    return found is not None and found.get("status") == "True"
