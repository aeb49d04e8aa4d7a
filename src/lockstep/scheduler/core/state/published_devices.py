"""The devices that drivers publish, by the nodes that reach them."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.api.claims import ResourceSlice, SliceSpec
from lockstep.api.quantity import parse
from lockstep.scheduler.core.resources.claim_allocation import Id, Stock
from lockstep.scheduler.core.resources.device_selectors import Candidate
from lockstep.scheduler.core.state.claim_wishes import node_matches


class PublishedDevices:
    """All ResourceSlices, kept by events; of each pool the newest generation counts."""

    def __init__(self) -> None:
        self._slices: dict[str, SliceSpec] = {}
        self._known: dict[Id, Candidate] | None = None
        self._stocks: dict[str, Stock] = {}

    def set(self, one: ResourceSlice) -> None:
        """Take in a slice, new or changed."""
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
            self._known = {}
            for spec in self._current():
                for device in spec.devices:
                    one = Candidate.of(spec.driver, spec.pool.name, device)
                    self._known[one.id] = one
        return self._known

    def _current(self) -> list[SliceSpec]:
        """Return the slices of each pool's newest generation."""
        newest: dict[tuple[str, str], int] = {}
        for spec in self._slices.values():
            at = spec.driver, spec.pool.name
            newest[at] = max(newest.get(at, 0), spec.pool.generation)
        return [
            spec
            for spec in self._slices.values()
            if spec.pool.generation == newest[spec.driver, spec.pool.name]
        ]

    def stock(self, node: str, labels: Mapping[str, str]) -> Stock:
        """Return the devices that a node reaches."""
        found = self._stocks.get(node)
        if found is None:
            reached = [one for one in self._current() if _reaches(one, node, labels)]
            known = self.known
            devices = [
                known[spec.driver, spec.pool.name, one.name]
                for spec in reached
                for one in spec.devices
            ]
            counters = {
                (spec.driver, spec.pool.name, group.name, name): parse(str(amount.value))
                for spec in self._current()
                for group in spec.shared_counters
                for name, amount in group.counters.items()
            }
            found = self._stocks[node] = Stock(devices, counters, self._partial())
        return found

    def _partial(self) -> frozenset[tuple[str, str]]:
        there: dict[tuple[str, str], list[SliceSpec]] = {}
        for spec in self._current():
            there.setdefault((spec.driver, spec.pool.name), []).append(spec)
        return frozenset(
            at for at, many in there.items() if len(many) < many[0].pool.resource_slice_count
        )


def _reaches(spec: SliceSpec, node: str, labels: Mapping[str, str]) -> bool:
    if spec.all_nodes or spec.node_name == node:
        return True
    return spec.node_selector is not None and node_matches(spec.node_selector, node, labels)
