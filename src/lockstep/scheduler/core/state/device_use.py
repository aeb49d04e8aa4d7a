"""What is given of devices: by claims, by decisions not yet written, by annotations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Final, NamedTuple

from lockstep.api.claims import DRIVER, INDEX, Allocation, ResourceClaim
from lockstep.api.quantity import parse
from lockstep.scheduler.core.model.workload import PodKey
from lockstep.scheduler.core.resources.claim_allocation import Stock, Use
from lockstep.scheduler.core.resources.device_selectors import (
    Candidate,
    SelectorError,
    qualified,
    selects,
)
from lockstep.scheduler.core.state.published_devices import PublishedDevices

_INDEX: Final = f"{DRIVER}/{INDEX}"


class Written(NamedTuple):
    """A claim that was decided on, as it is to be written."""

    claim: ResourceClaim
    allocation: Allocation | None
    """None where the claim has its devices already and only gains a user."""


class DeviceUse:
    """Counts what all claims have."""

    def __init__(self, devices: PublishedDevices) -> None:
        self.claims: dict[PodKey, ResourceClaim] = {}
        self.decided: dict[PodKey, list[Written]] = {}
        """By pod."""
        self._devices = devices
        self._total: Use | None = None

    def changed(self) -> None:
        """Take note that claims, decisions or devices are others."""
        self._total = None

    def of(self, stock: Stock, taken: int) -> Use:
        """Return what is given of a node's devices; *taken* is the mask of our cards that are."""
        whole, use = self._whole(), Use()
        for one in stock.devices:
            if one.driver == DRIVER:
                use.held[one.id] = int(bool(card_of(one) & taken))
            elif one.id in whole.held:
                use.held[one.id] = whole.held[one.id]
            for name in one.capacity if one.shared else ():
                key = one.id, name
                use.capacity[key] = whole.capacity.get(key, Fraction())
        use.counters = {at: amount for at, amount in whole.counters.items() if at in stock.counters}
        return use

    def decide(self, pod: PodKey, written: list[Written]) -> None:
        """Count what was decided for a pod, until its claims say so."""
        again = pod in self.decided or any(
            self.claims.get(_key(one.claim), one.claim).status.allocation for one in written
        )
        self.decided[pod] = written
        if again:
            self.changed()
        elif self._total is not None:
            for one in written:
                if one.allocation is not None:
                    self._count(self._total, one.allocation)

    def _whole(self) -> Use:
        if self._total is None:
            self._total = Use()
            decided = [one for many in self.decided.values() for one in many]
            fresh = {_key(one.claim): one.allocation for one in decided if one.allocation}
            for key, claim in self.claims.items():
                if key not in fresh and claim.status.allocation is not None:
                    self._count(self._total, claim.status.allocation)
            for allocation in fresh.values():
                self._count(self._total, allocation)
        return self._total

    def _count(self, use: Use, allocation: Allocation) -> None:
        for one in allocation.devices.results:
            device = self._devices.known.get((one.driver, one.pool, one.device))
            if one.admin_access:
                continue
            if device is None:
                use.held[one.driver, one.pool, one.device] = 1
                continue
            given = one.consumed_capacity.items()
            use.add(device, {qualified(k, one.driver): parse(str(v)) for k, v in given})

    def take_back(self, use: Use, claim: ResourceClaim, taken: int) -> None:
        """Count what a claim has no more: it is chosen anew."""
        allocation = claim.status.allocation
        for one in allocation.devices.results if allocation else ():
            device = self._devices.known.get((one.driver, one.pool, one.device))
            if device is not None and not (one.admin_access or card_of(device) & taken):
                given = one.consumed_capacity.items()
                amounts = {qualified(k, one.driver): parse(str(v)) for k, v in given}
                if use.held.get(device.id):
                    use.add(device, amounts, -1)


def _key(claim: ResourceClaim) -> PodKey:
    return claim.metadata.namespace, claim.metadata.name


def card_of(device: Candidate) -> int:
    """Return the mask of one of our cards; 0 for any other device."""
    index = device.attributes.get(_INDEX) if device.driver == DRIVER else None
    return 1 << index if isinstance(index, int) and 0 <= index < 64 else 0


def fits(texts: Iterable[str], device: Candidate) -> bool:
    """Return whether all expressions hold of a device; one that cannot be asked does not."""
    try:
        return all(selects(text, device) for text in texts)
    except SelectorError:
        return False


def ask_some(text: str, devices: Collection[Candidate]) -> None:
    """Ask an expression of devices until one answers.

    Raises:
        SelectorError: when none of them does.
    """
    failed: SelectorError | None = None
    for one in devices:
        try:
            selects(text, one)
        except SelectorError as error:
            failed = error
        else:
            return
    if failed is not None:
        raise failed
