"""Amounts of resources: sums over the containers of a pod, shown as Kubernetes writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lockstep.api.quantity import parse
from lockstep.api.wire import Json
from lockstep.apiserver.builtin.quantities import written


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity, and whether it is written in powers of two."""

    value: Fraction = Fraction(0)
    binary: bool = False

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.value + other.value, (self if self.value else other).binary)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.value - other.value, self.binary)

    def __str__(self) -> str:
        return written(self.value, binary=self.binary)


Amounts = dict[str, Amount]
NOTHING = Amount()
ONE = Amount(Fraction(1))


def read(given: Any) -> Amounts:
    """Return a map of quantities; what cannot be read is left to validation."""
    found: Amounts = {}
    for name, text in (given if isinstance(given, dict) else {}).items():
        try:
            found[name] = Amount(parse(str(text)), str(text).endswith("i"))
        except ValueError:
            continue
    return found


def added(parts: Iterable[Mapping[str, Amount]]) -> Amounts:
    """Return the sum of some maps of amounts."""
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, NOTHING) + amount
    return total


def largest(first: Amounts, second: Amounts) -> Amounts:
    """Return the larger amount of each resource."""
    found = dict(first)
    for name, amount in second.items():
        if name not in found or found[name].value < amount.value:
            found[name] = amount
    return found


def of_pod(spec: Json, side: str) -> Amounts:
    """Return what a pod asks for as a whole; *side* is ``requests`` or ``limits``.

    Init containers run one after the other and before the others, unless they stay on.
    """
    lasting = [_of(container, side) for container in spec.get("containers") or ()]
    staying: list[Amounts] = []
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of(container, side)
        if container.get("restartPolicy") == "Always":
            staying.append(own)
            peak = largest(peak, added(staying))
        else:
            peak = largest(peak, added([*staying, own]))
    total = largest(added([*lasting, *staying]), peak)
    total |= read((spec.get("resources") or {}).get(side))
    overhead = read(spec.get("overhead"))
    if side == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return added([total, overhead])


def _of(container: Json, side: str) -> Amounts:
    return read((container.get("resources") or {}).get(side))
