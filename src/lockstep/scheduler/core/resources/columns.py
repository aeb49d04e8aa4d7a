"""What pods ask for and nodes offer, as integers in columns.

A column is a resource name. Host ports are columns too (one of each port on every node), as is the
number of pods, so that one division answers whether a pod fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.containers import Container, Quantity
from lockstep.api.core import PodSpec
from lockstep.api.names import CPU, GPU, MEMORY, NICS, PODS
from lockstep.api.quantity import to_int, to_milli
from lockstep.scheduler.core.resources.device_inventory import Layout

PORT_PREFIX = "hostport/"
CARD_PREFIX = "card/"
INSIDE_PREFIX = "inside/"


def is_port(column: str) -> bool:
    """Return whether the column is a host port rather than a resource that nodes state."""
    return column.startswith(PORT_PREFIX)


def is_card(column: str) -> bool:
    """Return whether the column is a part of one GPU rather than a resource that nodes state."""
    return column.startswith(CARD_PREFIX)


def is_device(column: str) -> bool:
    """Return whether the column is about single devices of a node, or how they are connected."""
    return is_card(column) or column.startswith(INSIDE_PREFIX)


def amount(resource: str, quantity: Quantity) -> int:
    """Return a quantity in the resource's workload: milli-CPUs, bytes or pieces."""
    return to_milli(quantity) if resource == CPU else to_int(quantity)


def amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Return the quantities in their workloads, without those that are zero."""
    found = {name: amount(name, value) for name, value in quantities.items()}
    return {name: value for name, value in found.items() if value}


def _container(container: Container) -> dict[str, int]:
    # A limit without a request is the request, as the API server defaults it.
    asked = {**container.resources.limits, **container.resources.requests}
    return amounts(asked)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, value in least.items():
        total[name] = max(total.get(name, 0), value)


def pod_request(spec: PodSpec) -> dict[str, int]:
    """Return what a pod takes from its node, host ports and its own place included.

    Containers add up. An init container runs before them, beside the sidecars (init containers
    that restart) declared before it, so the larger of the two counts.
    """
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container(container))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        own = _container(container)
        if container.restart_policy == "Always":
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            beside = dict(sidecars)
            _add(beside, own)
            _raise_to(peak, beside)
    _add(total, sidecars)
    _raise_to(total, peak)
    _add(total, amounts(spec.overhead))
    total[PODS] = 1
    for port in _host_ports(spec):
        total[port] = 1
    return total


def _host_ports(spec: PodSpec) -> Iterable[str]:
    for container in (*spec.containers, *spec.init_containers):
        for port in container.ports:
            if port.host_port:
                yield f"{PORT_PREFIX}{port.protocol}/{port.host_port}"


CARD_KINDS = ("whole", "compute", "memory")
"""What there is of each GPU: itself as long as it is not shared, hundredths of it, its MiB."""
WHOLE_CARD = 100
"""Hundredths of compute that one GPU has."""
MARKS = ("lease", "mps", "timeslice", "online", "offline")
"""By what shares of a GPU are held, and of which class they are."""
UNMARKED = 1 << 30
"""What there is of a GPU for shares with a mark; less than that where some have it."""
SOCKET_KINDS = ("cpu", "memory")
"""What there is of each NUMA node for pods that must have it from one: milli-CPUs, bytes."""


class Columns:
    """Resource names and their column numbers, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._ids: dict[str, int] = {}
        self.card_ids: dict[str, list[int]] = {kind: [] for kind in CARD_KINDS}
        self.mark_ids: dict[str, list[int]] = {mark: [] for mark in MARKS}
        self.marked = False
        """Whether any share was ever held otherwise than by leases, or offline."""
        self.classed = False
        """Whether any share was ever offline."""
        self.nic_ids: list[int] = []
        self.socket_ids: dict[str, list[int]] = {kind: [] for kind in SOCKET_KINDS}
        self.layout_column: int | None = None
        """The column with the number of each node's layout; None until a pod goes by it."""
        self.layouts: list[Layout] = []
        self._layout_numbers: dict[Layout, int] = {}
        for name in (PODS, CPU, MEMORY, GPU, NICS):
            self.id(name)

    def __len__(self) -> int:
        return len(self.names)

    def open_cards(self, count: int) -> None:
        """Give each of the first *count* GPUs of a node its columns."""
        for card in range(self.cards, count):
            for kind in CARD_KINDS:
                self.card_ids[kind].append(self.id(f"{CARD_PREFIX}{card}/{kind}"))
            for mark in MARKS if self.marked else ():
                self.mark_ids[mark].append(self.id(f"{CARD_PREFIX}{card}/{mark}"))

    def open_marks(self, *, offline: bool) -> bool:
        """Count the shares of each GPU by their marks from now on; return whether that is new."""
        self.classed |= offline
        if self.marked:
            return False
        self.marked = True
        for mark in MARKS:
            names = [f"{CARD_PREFIX}{card}/{mark}" for card in range(self.cards)]
            self.mark_ids[mark] = [self.id(name) for name in names]
        return True

    def open_inside(self, cards: int, nics: int, sockets: int) -> None:
        """Give so many GPUs, NICs and NUMA nodes of a node, and its layout, their columns."""
        self.open_cards(cards)
        for nic in range(len(self.nic_ids), nics):
            self.nic_ids.append(self.id(f"{INSIDE_PREFIX}nic/{nic}"))
        for socket in range(len(self.socket_ids["cpu"]), sockets):
            for kind in SOCKET_KINDS:
                self.socket_ids[kind].append(self.id(f"{INSIDE_PREFIX}numa/{socket}/{kind}"))
        self.layout_column = self.id(f"{INSIDE_PREFIX}layout")

    def layout_number(self, layout: Layout) -> int:
        """Return the number that stands for a layout in its column."""
        found = self._layout_numbers.get(layout)
        if found is None:
            found = self._layout_numbers[layout] = len(self.layouts)
            self.layouts.append(layout)
        return found

    @property
    def cards(self) -> int:
        """Return how many GPUs of a node have columns of their own."""
        return len(self.card_ids["whole"])

    @property
    def device_ids(self) -> list[int]:
        """Return the columns about single devices of a node and how they are connected."""
        cards = [*self.card_ids.values(), *self.mark_ids.values()]
        parts = [*cards, self.nic_ids, *self.socket_ids.values()]
        ids = [column for part in parts for column in part]
        return ids if self.layout_column is None else [*ids, self.layout_column]

    @property
    def inside(self) -> bool:
        """Return whether NICs, NUMA nodes and layouts have columns."""
        return self.layout_column is not None

    def id(self, name: str) -> int:
        """Return the column of *name*, made when it is new."""
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            self.names.append(name)
        return found


CPU_COLUMN = 1
MEMORY_COLUMN = 2
GPU_COLUMN = 3
NIC_COLUMN = 4
