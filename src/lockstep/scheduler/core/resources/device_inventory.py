"""What devices a node states that it has, and where they sit inside it.

A statement that cannot be read, or that contradicts itself, counts as not made: the node then has
as many equal GPUs and NICs as its status counts, and nothing is known of how they are connected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from lockstep.api.devices import Device, NumaNode
from lockstep.api.names import DEVICES_ANNOTATION, NUMA_NODES_ANNOTATION
from lockstep.api.quantity import to_int, to_milli
from lockstep.scheduler.core.util.bitmask import MAX_DEVICES, mask_of


class Card(NamedTuple):
    """Where one GPU sits inside its node."""

    number: int
    nvlink: int
    numa: int
    pcie: int
    model: str
    memory: int


class Nic(NamedTuple):
    """Where one NIC sits inside its node, and what it is called there."""

    number: int
    numa: int
    pcie: int
    rail: int
    speed: int
    """Gb/s; 0 where the node does not say."""
    name: str


class Socket(NamedTuple):
    """The CPUs and the memory of one NUMA node."""

    number: int
    cpu: int
    """Thousandths of CPUs; 0 where only devices name the NUMA node."""
    memory: int
    """Bytes; 0 where the node does not say, and then not counted."""


@dataclass(frozen=True)
class Layout:
    """The devices of a node and which of them may be used. Equal ones are one object."""

    cards: tuple[Card, ...]
    healthy: int
    """The mask of the GPUs that may be used."""
    nics: tuple[Nic, ...] = ()
    healthy_nics: int = 0
    sockets: tuple[Socket, ...] = ()
    stated: bool = False
    """Whether the node itself says how its GPUs are connected."""
    flaw: str = ""
    """What is wrong with what the node states, empty where nothing is."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = self.cards, self.healthy, self.nics, self.healthy_nics, self.sockets, self.flaw
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    @property
    def width(self) -> int:
        """Return one more than the highest index of a GPU."""
        return max((card.number for card in self.cards), default=-1) + 1

    @property
    def nic_width(self) -> int:
        """Return one more than the highest index of a NIC."""
        return max((nic.number for nic in self.nics), default=-1) + 1

    @property
    def present(self) -> int:
        """Return the mask of all GPUs, healthy or not."""
        return mask_of(card.number for card in self.cards)

    def states_numa(self, *, host: bool) -> bool:
        """Return whether the NUMA nodes are known; with *host*, also how many CPUs each has."""
        return any(socket.cpu for socket in self.sockets) if host else bool(self.sockets)


NO_DEVICES = Layout((), 0)
_DEVICES = msgspec.json.Decoder(list[Device])
_NUMA_NODES = msgspec.json.Decoder(list[NumaNode])


class _Flaw(ValueError):
    """What a node states is no inventory; the message names the field and its value."""


@lru_cache(maxsize=4096)
def layout_of(
    annotation: str, count: int, numa_nodes: str = "", nic_count: int = 0, fenced: str = ""
) -> Layout:
    """Return a node's devices from its annotations.

    GPUs of which they say nothing are *count* equal ones, and NICs are *nic_count* equal ones.
    Those that are *fenced* (``gpu/0,nic/1``) may not be used, also where the node calls them
    healthy.
    """
    flaws = []
    devices: list[Device] = []
    sockets: tuple[Socket, ...] = ()
    try:
        devices = _read_devices(annotation)
    except _Flaw as flaw:
        flaws.append(f"{DEVICES_ANNOTATION}{flaw}")
    try:
        sockets = _read_sockets(numa_nodes)
    except _Flaw as flaw:
        flaws.append(f"{NUMA_NODES_ANNOTATION}{flaw}")
    usable = sorted((d for d in devices if d.index < MAX_DEVICES), key=lambda d: d.index)
    if not numa_nodes:
        sockets = _implied_sockets(usable)
    gpus = [d for d in usable if d.kind == "gpu"]
    nics = [d for d in usable if d.kind == "nic"]
    cards = tuple(Card(d.index, d.nvlink, d.numa, d.pcie, d.model, d.memory) for d in gpus)
    healthy = mask_of(d.index for d in gpus if d.healthy)
    if not gpus and count > 0:
        cards = tuple(Card(i, 0, -1, -1, "", 0) for i in range(min(count, MAX_DEVICES)))
        healthy = mask_of(card.number for card in cards)
    ports = tuple(Nic(d.index, d.numa, d.pcie, d.rail, d.speed, d.name) for d in nics)
    healthy_ports = mask_of(d.index for d in nics if d.healthy)
    if not nics and nic_count > 0:
        ports = tuple(Nic(i, -1, -1, -1, 0, "") for i in range(min(nic_count, MAX_DEVICES)))
        healthy_ports = mask_of(port.number for port in ports)
    return _interned(
        Layout(
            cards,
            healthy & ~_fenced(fenced, "gpu"),
            ports,
            healthy_ports & ~_fenced(fenced, "nic"),
            sockets,
            bool(gpus),
            "; ".join(flaws),
        )
    )


@lru_cache(maxsize=4096)
def _interned(layout: Layout) -> Layout:
    """Return the one object for all equal layouts."""
    return NO_DEVICES if layout == NO_DEVICES else layout


def _fenced(text: str, kind: str) -> int:
    """Return the mask of the fenced devices of one kind."""
    named = (one.strip().partition("/") for one in text.split(","))
    indices = (int(index) for what, _, index in named if what == kind and index.isdecimal())
    return mask_of(index for index in indices if index < MAX_DEVICES)


def _read_devices(text: str) -> list[Device]:
    devices = _decoded(_DEVICES, text)
    for place, device in enumerate(devices):
        least = {"index": 0, "memory": 0, "speed": 0, "numa": -1}
        for name, bound in least.items():
            if getattr(device, name) < bound:
                raise _Flaw(f"[{place}].{name} is {getattr(device, name)}; it is at least {bound}")
    _all_different([(f"[{i}].index", (d.kind, d.index)) for i, d in enumerate(devices)])
    return devices


def _read_sockets(text: str) -> tuple[Socket, ...]:
    found = []
    nodes = _decoded(_NUMA_NODES, text)
    for place, node in enumerate(nodes):
        if node.index < 0:
            raise _Flaw(f"[{place}].index is {node.index}; it is at least 0")
        found.append(
            Socket(
                node.index,
                _quantity(f"[{place}].cpus", node.cpus, milli=True),
                _quantity(f"[{place}].memory", node.memory),
            )
        )
    _all_different([(f"[{i}].index", ("NUMA node", n.index)) for i, n in enumerate(nodes)])
    return tuple(sorted(found))


def _implied_sockets(devices: Sequence[Device]) -> tuple[Socket, ...]:
    """Return the NUMA nodes that devices name; how much CPU and memory those have is unknown.

    Where all name the same one, it may be that the node says nothing of them.
    """
    named = sorted({device.numa for device in devices} - {-1})
    return tuple(Socket(number, 0, 0) for number in named) if len(named) > 1 else ()


def _quantity(where: str, value: str | int | float, *, milli: bool = False) -> int:
    try:
        found = to_milli(value) if milli else to_int(value)
    except ValueError as error:
        raise _Flaw(f"{where}: {error}") from None
    if found < 0:
        raise _Flaw(f"{where} is {value}; it is at least 0")
    return found


def _all_different(found: list[tuple[str, tuple[str, int]]]) -> None:
    seen: set[tuple[str, int]] = set()
    for where, (kind, index) in found:
        if (kind, index) in seen:
            raise _Flaw(f"{where} is {index}; another {kind} has it")
        seen.add((kind, index))


def _decoded(decoder: msgspec.json.Decoder[Any], text: str) -> list[Any]:
    if not text:
        return []
    try:
        found: list[Any] = decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _Flaw(_at_fault(str(error), text)) from None
    except msgspec.DecodeError as error:
        raise _Flaw(f" is not JSON: {error}") from None
    return found


def _at_fault(error: str, text: str) -> str:
    """Return what does not fit the schema: the field's path, its value, and what it should be."""
    what, _, path = error.partition(" - at ")
    path = path.strip("`").removeprefix("$")
    value: Any = msgspec.json.decode(text)
    for key, number in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value.get(key) if key else value[int(number)]
    shown = msgspec.json.encode(value).decode()
    return f"{path} is {shown if len(shown) < 40 else shown[:36] + ' ...'}: {what}"
