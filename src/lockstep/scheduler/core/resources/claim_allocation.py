"""Which devices of a node fulfil the claims of a pod: a search, without I/O.

A device is given once, except with admin access, which gives nothing away, and where the device
itself says that several claims may have it: then its capacity is what is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from lockstep.api.claims import Constraint, DeviceAsk, DeviceRequest, ResourceClaim
from lockstep.api.core import Toleration
from lockstep.api.quantity import parse
from lockstep.scheduler.core.resources.device_selectors import (
    Candidate,
    qualified,
    selects,
)
from lockstep.scheduler.core.resources.selectors import untolerated

STEPS: Final = 20_000
"""Devices tried before a search gives up."""
MOST: Final = 32
"""Devices that one claim may get, as upstream bounds them."""
Id = tuple[str, str, str]
CounterKey = tuple[str, str, str, str]
"""Driver, pool, set and counter."""


class ClaimError(ValueError):
    """A claim cannot be fulfilled anywhere as it is written; the message names the field."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One device for one request of a claim."""

    claim: int
    request: str
    device: Candidate
    ask: DeviceAsk
    amounts: Mapping[str, Fraction] = field(default_factory=dict)
    """What it takes of the capacity of a shared device."""


@dataclass(slots=True)
class Use:
    """What is given of devices."""

    held: dict[Id, int] = field(default_factory=dict)
    """How many claims have a device."""
    capacity: dict[tuple[Id, str], Fraction] = field(default_factory=dict)
    counters: dict[CounterKey, Fraction] = field(default_factory=dict)

    def add(self, device: Candidate, amounts: Mapping[str, Fraction], sign: int = 1) -> None:
        """Give a device, or (with *sign* -1) take it back."""
        before = self.held.get(device.id, 0)
        self.held[device.id] = before + sign
        for name, amount in amounts.items():
            key = device.id, name
            self.capacity[key] = self.capacity.get(key, Fraction()) + sign * amount
        if min(before, before + sign) == 0:  # a shared device takes its counters once
            for at, amount in counted(device):
                self.counters[at] = self.counters.get(at, Fraction()) + sign * amount


def counted(device: Candidate) -> list[tuple[CounterKey, Fraction]]:
    """Return what a device takes of which counters."""
    return [
        ((device.driver, device.pool, use.counter_set, name), parse(str(amount.value)))
        for use in device.counters
        for name, amount in use.counters.items()
    ]


@dataclass(frozen=True, slots=True)
class Stock:
    """The devices that a node reaches, and the counters that they share."""

    devices: Sequence[Candidate] = ()
    counters: Mapping[CounterKey, Fraction] = field(default_factory=dict)
    partial: frozenset[tuple[str, str]] = frozenset()
    """Pools (driver and name) of which slices are missing: ``All`` cannot be told there."""


Classes = Mapping[str, Sequence[str]]
"""The selectors of each DeviceClass."""


def allocate(
    claims: Sequence[ResourceClaim],
    stock: Stock,
    use: Use,
    classes: Classes,
    *,
    liked: Collection[Id] = (),
) -> list[Pick] | None:
    """Return devices for all *claims* together; None where the node has too few.

    Devices that are *liked* come first. *use* is left as it was.

    Raises:
        ClaimError: when a claim names a class that is not there, or is wrong in another way.
        SelectorError: when an expression cannot be asked.
    """
    return _Search(claims, stock, use, classes, liked).run()


@dataclass(slots=True)
class _Slot:
    """One device that is to be found; those of one request come in the order of the stock."""

    claim: int
    request: str
    ask: DeviceAsk
    devices: list[Candidate]
    follows: bool = False
    """Whether the slot before it is of the same request."""


class _Search:
    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        stock: Stock,
        use: Use,
        classes: Classes,
        liked: Collection[Id],
    ) -> None:
        self._claims, self._stock, self._use, self._classes = claims, stock, use, classes
        self._devices = sorted(stock.devices, key=lambda one: one.id not in liked)
        self._steps = STEPS
        self._picks: list[Pick] = []

    def run(self) -> list[Pick] | None:
        for alternative in self._alternatives():
            slots = [slot for part in alternative for slot in part]
            try:
                if self._fill(slots, 0, 0):
                    return list(self._picks)
            finally:
                self._drop(0)
        return None

    def _alternatives(self) -> Iterator[list[list[_Slot]]]:
        """Yield the ways to read the requests: each with its first alternative first."""
        requests = [
            (number, request)
            for number, claim in enumerate(self._claims)
            for request in claim.spec.devices.requests
        ]

        def rest(place: int) -> Iterator[list[list[_Slot]]]:
            if place == len(requests):
                yield []
                return
            number, request = requests[place]
            for name, ask in options(request):
                slots = self._slots(number, name, ask)
                if slots is None:
                    continue
                for more in rest(place + 1):
                    yield [slots, *more]

        return rest(0)

    def _slots(self, claim: int, name: str, ask: DeviceAsk) -> list[_Slot] | None:
        """Return what a request needs found; None where the node cannot have it."""
        texts = self._classes.get(ask.device_class_name)
        if texts is None:
            raise ClaimError(
                f"the claim names DeviceClass {ask.device_class_name!r}, which does not exist"
            )
        texts = [*texts, *expressions(ask)]
        fitting = [one for one in self._devices if all(selects(text, one) for text in texts)]
        if ask.allocation_mode == "All":
            if not fitting or any((one.driver, one.pool) in self._stock.partial for one in fitting):
                return None
            return [_Slot(claim, name, ask, [one]) for one in fitting]
        if ask.count > MOST:
            raise ClaimError(f"request {name}: count is {ask.count}; {MOST} devices may be")
        if len(fitting) < ask.count:
            return None
        return [_Slot(claim, name, ask, fitting, number > 0) for number in range(ask.count)]

    def _fill(self, slots: list[_Slot], place: int, start: int) -> bool:
        if place == len(slots):
            return True
        slot = slots[place]
        # Devices of one request are interchangeable: trying them in one order is enough.
        for number in range(start if slot.follows else 0, len(slot.devices)):
            self._steps -= 1
            if self._steps < 0:
                return False
            before = len(self._picks)
            if self._take(slot, slot.devices[number]):
                if self._fill(slots, place + 1, number + 1):
                    return True
                self._drop(before)
        return False

    def _take(self, slot: _Slot, device: Candidate) -> bool:
        ask = slot.ask
        amounts = self._amounts(device, ask)
        if amounts is None or not _tolerated(device, ask.tolerations):
            return False
        if any(one.device is device and one.claim == slot.claim for one in self._picks):
            return False
        pick = Pick(slot.claim, slot.request, device, ask, amounts)
        if not ask.admin_access and not self._free(device, amounts):
            return False
        if not self._agrees(pick):
            return False
        self._picks.append(pick)
        if not ask.admin_access:
            self._use.add(device, amounts)
        return True

    def _drop(self, length: int) -> None:
        while len(self._picks) > length:
            pick = self._picks.pop()
            if not pick.ask.admin_access:
                self._use.add(pick.device, pick.amounts, -1)

    def _amounts(self, device: Candidate, ask: DeviceAsk) -> dict[str, Fraction] | None:
        """Return what a request takes of a device's capacity; None where that is not enough.

        Of a shared device it takes all that it does not name.
        """
        wanted = {
            qualified(name, device.driver): parse(str(value))
            for name, value in ask.capacity.requests.items()
        }
        if any(device.capacity.get(name, Fraction(-1)) < one for name, one in wanted.items()):
            return None
        return {name: wanted.get(name, whole) for name, whole in device.capacity.items()}

    def _free(self, device: Candidate, amounts: Mapping[str, Fraction]) -> bool:
        use = self._use
        if use.held.get(device.id):
            return device.shared and self._has_left(device, amounts)
        return all(
            amount <= self._stock.counters.get(at, Fraction()) - use.counters.get(at, Fraction())
            for at, amount in counted(device)
        )

    def _has_left(self, device: Candidate, amounts: Mapping[str, Fraction]) -> bool:
        return all(
            self._use.capacity.get((device.id, name), Fraction()) + amount <= device.capacity[name]
            for name, amount in amounts.items()
        )

    def _agrees(self, pick: Pick) -> bool:
        """Return whether a device agrees with those that were picked, as the claim wants it."""
        for constraint in self._claims[pick.claim].spec.devices.constraints:
            if not _concerns(constraint, pick.request):
                continue
            value = _value(pick.device, constraint)
            if value is None:
                return False
            others = [
                _value(one.device, constraint)
                for one in self._picks
                if one.claim == pick.claim and _concerns(constraint, one.request)
            ]
            if constraint.distinct_attribute and value in others:
                return False
            if constraint.match_attribute and any(value != one for one in others):
                return False
        return True


def options(request: DeviceRequest) -> list[tuple[str, DeviceAsk]]:
    """Return the ways to fulfil a request, the best first, each with its name in the result."""
    if request.exactly is not None:
        return [(request.name, request.exactly)]
    return [(f"{request.name}/{one.name}", one) for one in request.first_available]


def expressions(ask: DeviceAsk) -> list[str]:
    """Return the selectors of a request itself."""
    return [one.cel.expression for one in ask.selectors if one.cel is not None]


def _concerns(constraint: Constraint, request: str) -> bool:
    named = constraint.requests
    return not named or request in named or request.partition("/")[0] in named


def _value(device: Candidate, constraint: Constraint) -> Any:
    return device.attributes.get(constraint.match_attribute or constraint.distinct_attribute)


def _tolerated(device: Candidate, tolerations: Iterable[Toleration]) -> bool:
    if not device.taints:
        return True
    taints = tuple((one.key, one.value, one.effect) for one in device.taints)
    return not untolerated(taints, list(tolerations), ("NoSchedule", "NoExecute"))
