"""What drivers publish, what pods claim of it, and which got what.

A claim on our own driver's cards is an ask for whole GPUs: it counts in the columns, quotas and
masks that annotations count in, so that a card granted by one is taken for the other. All that
else a claim wants of a node's devices is a column of its own: how many pods with such claims the
node can still take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from lockstep.api.claims import (
    DRIVER,
    ClaimSpec,
    DeviceClass,
    ResourceClaim,
)
from lockstep.api.core import (
    NodeSelector,
    Pod,
    PodSpec,
    SchedulingGate,
)
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import GPU
from lockstep.scheduler.core.model.workload import PodKey
from lockstep.scheduler.core.resources.claim_allocation import (
    ClaimError,
    Stock,
    allocate,
    expressions,
    options,
)
from lockstep.scheduler.core.state.claim_results import allocation, shown
from lockstep.scheduler.core.state.claim_wishes import all_of, with_amounts
from lockstep.scheduler.core.state.device_use import (
    DeviceUse,
    Written,
    ask_some,
    card_of,
    fits,
)
from lockstep.scheduler.core.state.published_devices import PublishedDevices

ENOUGH: Final = 1 << 20
"""What a node offers where its GPUs alone bound how many such pods it takes."""
PODS_AT_MOST: Final = 16
"""Pods with the same claims that one node is asked for; more are found in later rounds."""
SAMPLE: Final = 32
"""Devices by which it is told whether an expression can be asked at all."""
_encode = msgspec.msgpack.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Wish:
    """What the claims of a pod want of a node."""

    column: str
    specs: tuple[ClaimSpec, ...]
    plain: bool
    """Whether it is our driver's cards alone, with nothing that sets one apart from another."""


class DeviceClaims:
    """The objects of ``resource.k8s.io``, kept by events, and decisions not yet written."""

    def __init__(self) -> None:
        self.wishes: dict[str, Wish] = {}
        self.devices = PublishedDevices()
        self.use = DeviceUse(self.devices)
        self._classes: dict[str, tuple[str, ...]] = {}
        self._configs: dict[str, DeviceClass] = {}
        self._refused: set[tuple[str, str]] = set()

    @property
    def counts_devices(self) -> bool:
        """Return whether some wish goes by single devices, and not by the number of cards."""
        return any(not wish.plain for wish in self.wishes.values())

    # What there is.

    def set_class(self, one: DeviceClass) -> None:
        """Take in a class."""
        name = one.metadata.name
        self._configs[name] = one
        self._classes[name] = tuple(s.cel.expression for s in one.spec.selectors if s.cel)

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self._classes.pop(name, None)
        self._configs.pop(name, None)

    def set_claim(self, claim: ResourceClaim) -> None:
        """Take in a claim."""
        self.use.claims[claim.metadata.namespace, claim.metadata.name] = claim
        self.use.changed()

    def remove_claim(self, namespace: str, name: str) -> None:
        """Forget a claim."""
        self.use.claims.pop((namespace, name), None)
        self.use.changed()

    # What pods want.

    def wanted(self, pod: Pod, spec: PodSpec) -> PodSpec:
        """Return a pod's *spec* with what its claims make it ask for.

        A claim that cannot be fulfilled as it is holds the pod back as a gate does, and says why.
        """
        if not spec.resource_claims:
            return spec
        try:
            found = self._claims_of(pod)
            amounts, held = self._amounts(pod, found), self._home(pod, found)
        except ValueError as error:
            gates = [*spec.scheduling_gates, SchedulingGate(name=str(error))]
            return msgspec.structs.replace(spec, scheduling_gates=gates)
        return with_amounts(spec, amounts, held)

    def _amounts(self, pod: Pod, claims: Sequence[ResourceClaim]) -> dict[str, int]:
        amounts: dict[str, int] = {}
        cards, fresh = 0, []
        for claim in claims:
            if self._has(pod, claim):
                cards += self._cards_of(pod, claim).bit_count()
            else:
                fresh.append(claim)
                cards += sum(self._least(claim))
        if cards:
            amounts[GPU] = cards
        if fresh:
            amounts[self._wish(fresh).column] = 1
        return amounts

    def _has(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Return whether a claim's devices are there for a pod to use.

        What was allocated for a pod that never got its node is chosen anew.
        """
        return claim.status.allocation is not None and bool(
            pod.spec.node_name or _others(pod, claim)
        )

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Return the claims of a pod.

        Raises:
            ClaimError: when one is not there (yet), or is another pod's.
        """
        made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
        found = []
        for one in pod.spec.resource_claims:
            name = one.resource_claim_name or made.get(one.name)
            if name == "":
                continue  # the template asks for nothing
            claim = self.use.claims.get((pod.metadata.namespace, name)) if name else None
            if claim is None:
                what = (
                    f"ResourceClaim {name}"
                    if name
                    else (f"a ResourceClaim from template {one.resource_claim_template_name}")
                )
                raise ClaimError(f"{what} is not there yet (spec.resourceClaims {one.name})")
            if claim.metadata.deletion_timestamp is not None:
                raise ClaimError(f"ResourceClaim {name} is being deleted")
            found.append(claim)
        return found

    def _wish(self, claims: Sequence[ResourceClaim]) -> Wish:
        specs = tuple(claim.spec for claim in claims)
        self._check(specs)
        digest = hashlib.sha256(_encode(specs)).hexdigest()[:8]
        column = f"device claims ({', '.join(map(shown, specs))}; {digest})"
        found = self.wishes.get(column)
        if found is None:
            found = self.wishes[column] = Wish(column, specs, self._plain(specs))
        return found

    def _check(self, specs: Sequence[ClaimSpec]) -> None:
        """Ask every expression of some devices.

        Raises:
            ClaimError: when a class is not there.
            SelectorError: when an expression can be asked of none of them.
        """
        some = list(islice(self.devices.known.values(), SAMPLE))
        for spec in specs:
            for request in spec.devices.requests:
                for _, ask in options(request):
                    if ask.device_class_name not in self._classes:
                        raise ClaimError(
                            f"request {request.name} names DeviceClass {ask.device_class_name}, "
                            "which does not exist"
                        )
                    texts = self._classes[ask.device_class_name]
                    ours = [one for one in some if fits(texts, one)]
                    for text in expressions(ask):
                        ask_some(text, ours)

    def _plain(self, specs: Sequence[ClaimSpec]) -> bool:
        return not any(
            spec.devices.constraints
            or request.exactly is None
            or request.exactly.allocation_mode == "All"
            or request.exactly.admin_access
            or not self._is_ours(request.exactly.device_class_name)
            for spec in specs
            for request in spec.devices.requests
        )

    def _is_ours(self, name: str) -> bool:
        """Return whether a class is of our driver's cards."""
        if name == DRIVER:
            return True
        texts = self._classes.get(name, ())
        some = [one for one in self.devices.known.values() if fits(texts, one)]
        return bool(some) and all(one.driver == DRIVER for one in some)

    def _least(self, claim: ResourceClaim) -> list[int]:
        """Return how many of our cards each request takes at least."""
        found = []
        for request in claim.spec.devices.requests:
            asks = [ask for _, ask in options(request)]
            counts = [
                0
                if ask.admin_access
                or ask.allocation_mode == "All"
                or not self._is_ours(ask.device_class_name)
                else ask.count
                for ask in asks
            ]
            found.append(min(counts, default=0))
        return found

    def _home(self, pod: Pod, claims: Sequence[ResourceClaim]) -> NodeSelector | None:
        """Return where the devices are that a pod's claims have already."""
        held = (one.status.allocation for one in claims if self._has(pod, one))
        return all_of(one.node_selector for one in held if one is not None)

    def cards(self, pod: Pod) -> int:
        """Return the mask of our cards that a pod holds by its claims."""
        if not pod.spec.resource_claims or not pod.spec.node_name:
            return 0
        try:
            claims = self._claims_of(pod)
        except ClaimError:
            return 0
        mask = 0
        for claim in claims:
            mask |= self._cards_of(pod, claim)
        return mask

    def _cards_of(self, pod: Pod, claim: ResourceClaim) -> int:
        """Return the cards of a claim, for the first of its users alone: they count once."""
        allocation, users = claim.status.allocation, claim.status.reserved_for
        if allocation is None or (users and users[0].uid != pod.metadata.uid):
            return 0
        mask = 0
        for one in allocation.devices.results:
            device = self.devices.known.get((one.driver, one.pool, one.device))
            if device is not None and one.driver == DRIVER and not one.admin_access:
                mask |= card_of(device)
        return mask

    # What nodes have.

    def offers(self, node: str, labels: Mapping[str, str], taken: int) -> dict[str, int]:
        """Return how many pods with each wish a node can still take.

        *taken* is the mask of its cards that are held or must not be used.
        """
        if not self.wishes:
            return {}
        stock = self.devices.stock(node, labels)
        if not stock.devices:
            return {}
        found = {}
        for column, wish in self.wishes.items():
            if (column, node) not in self._refused:
                found[column] = self._room(wish, node, stock, taken)
        return {column: count for column, count in found.items() if count}

    def _room(self, wish: Wish, node: str, stock: Stock, taken: int) -> int:
        claims = [_bare(spec) for spec in wish.specs]
        try:
            if wish.plain and self._all_alike(wish, stock, taken):
                return ENOUGH
            use, count = self.use.of(stock, taken), 0
            while count < PODS_AT_MOST:
                picks = allocate(claims, stock, use, self._classes)
                if picks is None:
                    return count
                count += 1
                if all(pick.ask.admin_access for pick in picks):
                    return ENOUGH
                for pick in picks:
                    if not pick.ask.admin_access:
                        use.add(pick.device, pick.amounts)
        except ValueError:
            return 0
        return count

    def _all_alike(self, wish: Wish, stock: Stock, taken: int) -> bool:
        """Return whether any of a node's usable cards will do, so that counting them is enough."""
        cards = [one for one in stock.devices if one.driver == DRIVER]
        asks = [
            request.exactly
            for spec in wish.specs
            for request in spec.devices.requests
            if request.exactly is not None
        ]
        return bool(cards) and all(
            fits((*self._classes.get(ask.device_class_name, ()), *expressions(ask)), card)
            and (not card.taints or bool(card_of(card) & taken))
            for ask in asks
            for card in cards
        )

    def retry(self) -> None:
        """Offer again what was refused: something was freed."""
        self._refused.clear()

    def devices_changed(self) -> None:
        """Take note that there are other devices than before."""
        self.use.changed()

    # What is decided.

    def decide(
        self, pod: Pod, node: str, labels: Mapping[str, str], taken: int, liked: int
    ) -> tuple[list[Written], int] | None:
        """Return a pod's claims with devices of a node, and the mask of our cards among them.

        None where the node has too few after all; it is then not offered for such pods until
        something about it changes. *liked* are the cards that were dealt to the pod.
        """
        try:
            claims = self._claims_of(pod)
            fresh = [one for one in claims if not self._has(pod, one)]
            stock = self.devices.stock(node, labels)
            use = self.use.of(stock, taken)
            for one in fresh:  # what it was to get before counts no more
                self.use.take_back(use, one, taken)
            ids = {one.id for one in stock.devices if card_of(one) & liked}
            picks = allocate(fresh, stock, use, self._classes, liked=ids) if fresh else []
        except ValueError:
            return None
        if picks is None:
            self._refused.add((self._wish(fresh).column, node))
            return None
        written = [Written(one, None) for one in claims if self._has(pod, one)]
        for number, claim in enumerate(fresh):
            mine = [pick for pick in picks if pick.claim == number]
            written.append(Written(claim, allocation(claim, mine, node, self._class_config)))
        mask = 0
        for pick in picks:
            if not pick.ask.admin_access:
                mask |= card_of(pick.device)
        return written, mask

    def _class_config(self, name: str) -> Iterable[dict[str, object]]:
        known = self._configs.get(name)
        return known.spec.config if known is not None else ()

    def assume(self, key: PodKey, written: list[Written]) -> None:
        """Count what was decided for a pod until its claims say so."""
        self.use.decide(key, written)

    def decided(self, key: PodKey) -> list[Written]:
        """Return what is to be written for a pod before it is bound."""
        return self.use.decided.get(key, [])

    def settle(self, key: PodKey) -> None:
        """Take note that a pod is bound or gone: what its claims say counts."""
        if self.use.decided.pop(key, None) is not None:
            self.use.changed()


def _others(pod: Pod, claim: ResourceClaim) -> bool:
    return any(one.uid != pod.metadata.uid for one in claim.status.reserved_for)


def _bare(spec: ClaimSpec) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name="asked"), spec=spec)
