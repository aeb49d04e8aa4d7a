"""The devices that drivers publish, by the nodes that reach them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from lockstep.api.claims import ResourceSlice, SliceSpec
from lockstep.api.quantity import parse
from lockstep.scheduler.core.resources.claim_allocation import CounterKey, Id, Stock
from lockstep.scheduler.core.resources.device_selectors import Candidate
from lockstep.scheduler.core.state.claim_wishes import node_matches


class PublishedDevices:
    """All ResourceSlices, kept by events; of each pool the newest generation counts."""

    def __init__(self) -> None:
        self._slices: dict[str, SliceSpec] = {}
        self._known: dict[Id, Candidate] | None = None
        self._stocks: dict[str, Stock] = {}
        self._by_node: dict[str, list[SliceSpec]] = {}
        self._wide: list[SliceSpec] = []
        """Slices that more than one node may reach."""
        self._counters: dict[CounterKey, Fraction] = {}
        self._partial: frozenset[tuple[str, str]] = frozenset()

    def set(self, one: ResourceSlice) -> None:
        """Take in a slice, new or changed.

        Raises:
            ValueError: when a capacity is not a quantity; the slice counts as not there.
        """
        self.remove(one.metadata.name)
        for device in one.spec.devices:
            Candidate.of(one.spec.driver, one.spec.pool.name, device)
        self._slices[one.metadata.name] = one.spec
        self._forget()

    def remove(self, name: str) -> None:
        """Forget a slice."""
        if self._slices.pop(name, None) is not None:
            self._forget()

    def relabelled(self, node: str) -> None:
        """Take note that a node's labels may be others: they say which devices it reaches."""
        self._stocks.pop(node, None)

    def _forget(self) -> None:
        self._known = None
        self._stocks.clear()

    @property
    def known(self) -> dict[Id, Candidate]:
        """Return every device by what it is called."""
        if self._known is None:
            self._look()
        return self._known or {}

    def stock(self, node: str, labels: Mapping[str, str]) -> Stock:
        """Return the devices that a node reaches."""
        found = self._stocks.get(node)
        if found is None:
            known = self.known
            wide = [one for one in self._wide if _reaches(one, node, labels)]
            reached = [*self._by_node.get(node, ()), *wide]
            devices = [
                known[spec.driver, spec.pool.name, one.name]
                for spec in reached
                for one in spec.devices
            ]
            pools = {(spec.driver, spec.pool.name) for spec in reached}
            counters = {at: one for at, one in self._counters.items() if at[:2] in pools}
            found = self._stocks[node] = Stock(devices, counters, self._partial)
        return found

    def _look(self) -> None:
        """Read the slices of each pool's newest generation."""
        pools: dict[tuple[str, str], list[SliceSpec]] = {}
        for spec in self._slices.values():
            there = pools.setdefault((spec.driver, spec.pool.name), [])
            if there and spec.pool.generation > there[0].pool.generation:
                there.clear()
            if not there or spec.pool.generation == there[0].pool.generation:
                there.append(spec)
        self._partial = frozenset(
            at for at, many in pools.items() if len(many) < many[0].pool.resource_slice_count
        )
        self._known, self._counters = {}, {}
        self._by_node, self._wide = {}, []
        for spec in (one for many in pools.values() for one in many):
            if spec.node_name:
                self._by_node.setdefault(spec.node_name, []).append(spec)
            else:
                self._wide.append(spec)
            for device in spec.devices:
                one = Candidate.of(spec.driver, spec.pool.name, device)
                self._known[one.id] = one
            for group in spec.shared_counters:
                for name, amount in group.counters.items():
                    at = spec.driver, spec.pool.name, group.name, name
                    self._counters[at] = parse(str(amount.value))


def _reaches(spec: SliceSpec, node: str, labels: Mapping[str, str]) -> bool:
    if spec.all_nodes:
        return True
    return spec.node_selector is not None and node_matches(spec.node_selector, node, labels)
