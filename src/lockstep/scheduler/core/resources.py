"""What pods ask for and nodes offer, as integers in columns.

A column is a resource name. Host ports are columns too (one of each port on every node), as is the
number of pods, so that one division answers whether a pod fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.api.core import Container, PodSpec, Quantity
from lockstep.api.names import CPU, GPU, MEMORY, PODS
from lockstep.api.quantity import to_int, to_milli

PORT_PREFIX = "hostport/"
CARD_PREFIX = "card/"


def is_port(column: str) -> bool:
    """Return whether the column is a host port rather than a resource that nodes state."""
    return column.startswith(PORT_PREFIX)


def is_card(column: str) -> bool:
    """Return whether the column is a part of one GPU rather than a resource that nodes state."""
    return column.startswith(CARD_PREFIX)


def amount(resource: str, quantity: Quantity) -> int:
    """Return a quantity in the resource's unit: milli-CPUs, bytes or pieces."""
    return to_milli(quantity) if resource == CPU else to_int(quantity)


def amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    """Return the quantities in their units, without those that are zero."""
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
"""What there is of each GPU: itself as long as nobody shares it, hundredths of it, its MiB."""


class Columns:
    """Resource names and their column numbers, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._ids: dict[str, int] = {}
        self.card_ids: dict[str, list[int]] = {kind: [] for kind in CARD_KINDS}
        for name in (PODS, CPU, MEMORY, GPU):
            self.id(name)

    def __len__(self) -> int:
        return len(self.names)

    def open_cards(self, count: int) -> None:
        """Give each of the first *count* GPUs of a node its columns."""
        for card in range(self.cards, count):
            for kind in CARD_KINDS:
                self.card_ids[kind].append(self.id(f"{CARD_PREFIX}{card}/{kind}"))

    @property
    def cards(self) -> int:
        """Return how many GPUs of a node have columns of their own."""
        return len(self.card_ids["whole"])

    def id(self, name: str) -> int:
        """Return the column of *name*, made when it is new."""
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            self.names.append(name)
        return found


PODS_COLUMN = 0
CPU_COLUMN = 1
MEMORY_COLUMN = 2
GPU_COLUMN = 3
