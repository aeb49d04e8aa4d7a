"""How parts of objects look in the cells of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lockstep.api.wire import Json

Cells = list[Any]
Cell = Callable[[Json], Any]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "boolean": False}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, where its description is found, and what its cells show."""

    name: str
    about: str = ""
    """The description, or ``COMPONENT#property`` of the built-in schemas."""
    cell: Cell | str = ""
    """A function of the object, or a dotted path in it: by default that of the property."""
    type: str = "string"
    unset: Any = None
    """Shown where nothing stands at the path; by default the zero of the type."""
    format: str = ""
    priority: int = 0
    timed: Callable[[Json, float], Any] | None = None
    """Stands for *cell* where the cell depends on the time."""

    def reader(self) -> Callable[[Json, float], Any]:
        """Return what makes the cell of an object at a time, in seconds since the epoch."""
        if self.timed is not None:
            return self.timed
        if callable(cell := self.cell):
            return lambda obj, _: cell(obj)
        unset = _ZEROS.get(self.type) if self.unset is None else self.unset
        names = (cell or self._described()).split(".")
        return lambda obj, _: _below(obj, names, unset)

    def _described(self) -> str:
        component, _, name = self.about.partition("#")
        for part in ("Spec", "Status"):
            if component.endswith(part):
                return f"{part.lower()}.{name}"
        return name


def wide(name: str, about: str, cell: Cell | str = "", **more: Any) -> Column:
    """Return a column that is shown only where there is room."""
    return Column(name, about, cell, priority=1, **more)


def at(obj: Any, path: str, unset: Any = None) -> Any:
    """Return what stands at a dotted *path* in *obj*, or *unset*."""
    return _below(obj, path.split("."), unset)


def _below(obj: Any, names: Iterable[str], unset: Any) -> Any:
    for name in names:
        obj = obj.get(name) if isinstance(obj, dict) else None
        if obj is None:
            return unset
    return obj


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


def listed(names: Iterable[str]) -> Cell:
    """Return the cell that joins these values, found at dotted paths, with a slash."""
    paths = tuple(names)
    return lambda obj: "/".join(str(at(obj, path, "")) for path in paths)


_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
NAME = Column("Name", f"{_META}#name", "metadata.name", format="name")
AGE = Column("Age", f"{_META}#creationTimestamp", timed=age)


def marked_default(*groups: str) -> Column:
    """Return the column of names, in which the default of its kind is marked as that.

    The annotation ``is-default-class`` of one of *groups* says which one it is.
    """

    def cell(obj: Json) -> str:
        marks = at(obj, "metadata.annotations", {})
        is_default = any(marks.get(f"{group}/is-default-class") == "true" for group in groups)
        name = str(at(obj, "metadata.name", ""))
        return f"{name} (default)" if is_default else name

    return replace(NAME, cell=cell)


def containers(template: str, make: Callable[..., Column] = wide) -> tuple[Column, Column]:
    """Return the columns of the containers of the pod template at the path *template*."""

    def named(field: str) -> Cell:
        path = f"{template}.spec.containers"
        return lambda obj: ",".join(one.get(field, "") for one in at(obj, path, []))

    return (
        make("Containers", "Names of each container in the template.", named("name")),
        make("Images", "Images referenced by each container in the template.", named("image")),
    )
