"""The form in which built-in objects are stored: defaults filled in, emptiness left out.

Kubernetes reads an object into a Go struct and writes that. What this does to an object follows
from the schema: optional lists and maps that are empty vanish, parts that always exist appear,
quantities get their canonical form, and every struct has its own defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import msgspec

from lockstep.api.quantity import to_milli
from lockstep.api.wire import Json
from lockstep.apiserver.builtin.quantities import canonical
from lockstep.apiserver.recent import Recent, content
from lockstep.apiserver.schema.components import components
from lockstep.apiserver.schema.zeros import Zeros, zeros_of

Fill = Callable[[Json], None]

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# Quantities, times and the like have a default in the documents, yet are no structs.
_ZEROES = ("", 0, False)
_SCALARS = ("Quantity", "Time", "MicroTime", "IntOrString")
# Lists of these take long to work through, and recur in all pods of a workload.
_RECURRING = ("io.k8s.api.core.v1.Container", "io.k8s.api.core.v1.Volume")

_decode = msgspec.msgpack.Decoder().decode


class _Plan:
    """What to do at one place; absent where nothing is to be done at or below it."""

    __slots__ = (
        "absent",
        "concerns",
        "droppable",
        "each",
        "empties",
        "every",
        "fill",
        "is_quantity",
        "members",
        "nulls",
        "recent",
    )

    def __init__(self) -> None:
        self.fill: Fill | None = None
        self.members: dict[str, _Plan] = {}
        self.droppable: frozenset[str] = frozenset()
        self.absent: tuple[tuple[str, Any], ...] = ()
        self.empties: frozenset[str] = frozenset()
        self.nulls: frozenset[str] = frozenset()
        self.concerns: frozenset[str] = frozenset()
        self.each: _Plan | None = None
        self.every: _Plan | None = None
        self.is_quantity = False
        self.recent: Recent[bytes] | None = None
        """Normal forms by what was sent, of lists that recur."""


class Normalizer:
    """Brings objects of the built-in components into the form in which they are stored."""

    def __init__(self, fills: Mapping[str, Fill]) -> None:
        self._fills = fills
        self._plans: dict[str, _Plan] = {}

    def normalize(self, component: str, obj: Json, old: Json | None = None) -> None:
        """Normalize *obj*, an object of *component*, in place.

        Parts that it shares with *old*, the stored object that it replaces, are in that form.

        Raises:
            KeyError: when there is no such component.
        """
        before = old or {}
        shared = {name for name, part in obj.items() if before.get(name) is part}
        _apply_struct(self._plan(component), obj, shared)

    def _plan(self, name: str) -> _Plan:
        if name not in self._plans:
            plan = self._plans[name] = _Plan()
            plan.is_quantity = name == _QUANTITY
            plan.fill = self._fills.get(name.removeprefix("io.k8s.api."))
            self._compile(plan, components()[name])
            self._add_zeros(plan, zeros_of(name), components()[name])
        return self._plans[name]

    def _add_zeros(self, plan: _Plan, zeros: Zeros, schema: Json) -> None:
        parts: Json = schema.get("properties", {})
        lists = {field for field, part in parts.items() if part.get("type") == "array"}
        optional = zeros.written.keys() - set(schema.get("required", ()))
        plan.nulls = frozenset(f for f in optional & lists if zeros.written[f] is None)
        plan.droppable -= plan.nulls
        plan.absent += tuple((f, zeros.written[f]) for f in sorted(optional - plan.nulls))
        plan.empties = zeros.dropped

    def _compile(self, plan: _Plan, schema: Json) -> None:
        properties: Json = schema.get("properties", {})
        required = schema.get("required", ())
        plan.droppable = frozenset(
            name
            for name, part in properties.items()
            if name not in required and (part.get("type") == "array" or _is_map(part))
        )
        plan.absent = tuple(
            (name, part["default"])
            for name, part in properties.items()
            if _is_always_there(part, required=name in required)
        )
        for name, part in properties.items():
            if below := self._part(part):
                plan.members[name] = below
        plan.concerns = plan.droppable | plan.members.keys()

    def _part(self, schema: Json) -> _Plan | None:
        ref = _ref(schema)
        if ref:
            plan = self._plan(ref)
            return plan if _does_something(plan) else None
        inside = schema.get("items") or schema.get("additionalProperties")
        below = self._part(inside) if isinstance(inside, dict) else None
        if below is None:
            return None
        plan = _Plan()
        if "items" in schema:
            plan.each = below
            plan.recent = Recent() if _ref(schema["items"]) in _RECURRING else None
        else:
            plan.every = below
        return plan


def _apply(plan: _Plan, value: Any) -> None:
    if isinstance(value, list):
        if plan.each is not None:
            each = plan.each
            is_plain = not (each.fill or each.absent or each.every or each.nulls)
            for position, item in enumerate(value):
                if not (
                    is_plain
                    and type(item) is dict
                    and each.concerns.isdisjoint(item)
                    and (not each.empties or all(item.values()))
                ):
                    _step(each, value, position, item)
    elif isinstance(value, dict):
        if plan.every is not None:
            for key, item in value.items():
                _step(plan.every, value, key, item)
                if plan.every.is_quantity:
                    _round_up(value, key)
            return
        _apply_struct(plan, value)


def _apply_struct(plan: _Plan, value: Json, settled: Set[str] = frozenset()) -> None:
    _fill(plan, value)
    concerns = plan.concerns
    if concerns.isdisjoint(value):
        return
    for key in (value.keys() & concerns) - settled:
        member = value[key]
        below = plan.members.get(key)
        if not member and key in plan.droppable:
            del value[key]
        elif below is None:
            continue
        elif below.is_quantity:
            _step(below, value, key, member)
        elif below.recent is not None:
            value[key] = _recalled(below, below.recent, member)
        else:
            _apply(below, member)


def _recalled(plan: _Plan, recent: Recent[bytes], value: Any) -> Any:
    """Return the normal form of *value*, which depends on nothing else, as a tree of its own."""
    sent = content(value)
    if sent is not None and (known := recent.get(sent)) is not None:
        return _decode(known)
    _apply(plan, value)
    if sent is not None and (normal := content(value)) is not None:
        recent.keep(sent, normal)
    return value


def _fill(plan: _Plan, value: Json) -> None:
    """Leave out of a struct what is empty, and fill in its defaults."""
    if plan.empties and not all(value.values()):
        for key in [k for k, v in value.items() if v in _ZEROES and k in plan.empties]:
            del value[key]
    if plan.fill is not None:
        plan.fill(value)
    for name in plan.nulls:
        if not value.get(name):
            value[name] = None
    for name, default in plan.absent:
        if name not in value:
            value[name] = {} if default == {} else default


def _step(plan: _Plan, holder: Any, key: Any, value: Any) -> None:
    if plan.is_quantity:
        text = str(value)
        try:
            holder[key] = canonical(text)
        except ValueError:
            # What is no quantity stays as it is, for validation to refuse.
            holder[key] = value
    else:
        _apply(plan, value)


def _round_up(amounts: Json, name: str) -> None:
    """Make an amount of a resource no finer than a thousandth."""
    given = amounts[name]
    if isinstance(given, str) and given.endswith(("u", "n")) and given[:-1].isdigit():
        amounts[name] = canonical(f"{to_milli(given)}m")


def _does_something(plan: _Plan) -> bool:
    return bool(
        plan.fill
        or plan.members
        or plan.droppable
        or plan.absent
        or plan.empties
        or plan.nulls
        or plan.is_quantity
    )


def _is_map(part: Json) -> bool:
    return part.get("type") == "object" and "additionalProperties" in part


def _is_always_there(part: Json, *, required: bool) -> bool:
    default = part.get("default", "")
    if default == {}:
        return not _ref(part).endswith(_SCALARS)
    return bool(default) or (required and "default" in part)


def _ref(schema: Json) -> str:
    refs = (part["$ref"] for part in (schema, *schema.get("allOf", ())) if "$ref" in part)
    return str(next(refs, "")).rpartition("/")[2]
