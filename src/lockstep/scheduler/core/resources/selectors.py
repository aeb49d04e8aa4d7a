"""Node labels and taints as columns of small integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lockstep.api.core import NodeSelectorRequirement, Taint, Toleration
from lockstep.scheduler.core.util.array_types import BoolArray

NAME_FIELD = "field:metadata.name"
"""The only node field that matchFields may name, kept as one more label column; the colon keeps
it apart from any label."""


class LabelColumn:
    """The values of one label over all rows, as ids; -1 where a node does not have it."""

    def __init__(self, capacity: int) -> None:
        self.ids: NDArray[np.int32] = np.full(capacity, -1, dtype=np.int32)
        self.values: list[str] = []
        self._known: dict[str, int] = {}

    def set(self, row: int, value: str | None) -> None:
        """Note the value of one row."""
        if value is None:
            self.ids[row] = -1
            return
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = found

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        more = np.full(capacity - len(self.ids), -1, dtype=np.int32)
        self.ids = np.concatenate([self.ids, more])

    def any_of(self, values: Iterable[str]) -> BoolArray:
        """Return the rows that hold one of *values*."""
        wanted = [self._known[value] for value in values if value in self._known]
        return np.isin(self.ids, np.array(wanted, dtype=np.int32))

    def where(self, test: Callable[[str], bool]) -> BoolArray:
        """Return the rows whose value passes *test*, which is asked once a distinct value."""
        table = np.array([test(value) for value in self.values] + [False], dtype=bool)
        return table[self.ids]


def matches(column: LabelColumn, requirement: NodeSelectorRequirement) -> BoolArray:
    """Return the rows that fulfil one requirement of a node selector."""
    match requirement.operator:
        case "In":
            return column.any_of(requirement.values)
        case "NotIn":
            return ~column.any_of(requirement.values)
        case "Exists":
            return column.ids >= 0
        case "DoesNotExist":
            return column.ids < 0
        case "Gt":
            bound = _integer(requirement.values)
            return column.where(lambda v: _compares(v, bound, greater=True))
        case "Lt":
            bound = _integer(requirement.values)
            return column.where(lambda v: _compares(v, bound, greater=False))


def _integer(values: Sequence[str]) -> int | None:
    try:
        return int(values[0])
    except (IndexError, ValueError):
        return None


def _compares(value: str, bound: int | None, *, greater: bool) -> bool:
    try:
        number = int(value)
    except ValueError:
        return False
    if bound is None:
        return False
    return number > bound if greater else number < bound


TaintSet = tuple[tuple[str, str, str], ...]
"""A node's taints as (key, value, effect), sorted."""


def taint_set(taints: Iterable[Taint]) -> TaintSet:
    """Return the taints in the form in which they are interned."""
    return tuple(sorted({(t.key, t.value, t.effect) for t in taints}))


def format_taint(taint: tuple[str, str, str]) -> str:
    """Return a taint as kubectl writes it: ``key=value:Effect``."""
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _bears(toleration: Toleration, taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.effect and toleration.effect != effect:
        return False
    if toleration.key and toleration.key != key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and toleration.value == value
        case "Gt":
            return _compares(value, _integer([toleration.value]), greater=True)
        case "Lt":
            return _compares(value, _integer([toleration.value]), greater=False)


def untolerated(
    taints: TaintSet, tolerations: Sequence[Toleration], effects: Iterable[str]
) -> list[tuple[str, str, str]]:
    """Return the taints with one of *effects* that no toleration bears."""
    return [
        taint
        for taint in taints
        if taint[2] in effects and not any(_bears(t, taint) for t in tolerations)
    ]


class TaintSets:
    """Sets of taints and their numbers; 0 is the empty one."""

    def __init__(self) -> None:
        self.sets: list[TaintSet] = [()]
        self._known: dict[TaintSet, int] = {(): 0}

    def id(self, taints: TaintSet) -> int:
        """Return the number of the set, given when it is new."""
        found = self._known.get(taints)
        if found is None:
            found = self._known[taints] = len(self.sets)
            self.sets.append(taints)
        return found


def fields_and_labels(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return a node's labels together with the field that selectors may name."""
    return {**labels, NAME_FIELD: name}
