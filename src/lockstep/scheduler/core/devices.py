"""The GPUs inside a node: which are there, which are free, and which to take.

A set of devices is a bit mask, bit *i* for the device with index *i*. Shares of one device come
as further columns beside the masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from lockstep.api.core import Device

MAX_DEVICES = 64
"""Devices with a higher index are not used: a mask is one 64-bit word."""


class Card(NamedTuple):
    """Where one GPU sits inside its node."""

    number: int
    nvlink: int
    numa: int
    pcie: int
    model: str
    memory: int


class Layout(NamedTuple):
    """The GPUs of a node and which of them may be used."""

    cards: tuple[Card, ...]
    healthy: int

    @property
    def width(self) -> int:
        """Return one more than the highest index."""
        return max((card.number for card in self.cards), default=-1) + 1

    @property
    def present(self) -> int:
        """Return the mask of all devices, healthy or not."""
        return mask_of(card.number for card in self.cards)


NO_DEVICES = Layout((), 0)
_DECODER = msgspec.json.Decoder(list[Device])


def mask_of(indices: Iterable[int]) -> int:
    """Return the mask with the bits of *indices* set."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


def indices_of(mask: int) -> tuple[int, ...]:
    """Return the indices whose bits are set, ascending."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def format_indices(mask: int) -> str:
    """Return the mask as the annotation writes it: ``0,1,2``."""
    return ",".join(str(i) for i in indices_of(mask))


@lru_cache(maxsize=4096)
def parse_indices(text: str) -> int:
    """Return the mask of an annotation such as ``0,1,2``; whatever is no index is left out."""
    found = (part.strip() for part in text.split(","))
    return mask_of(int(p) for p in found if p.isascii() and p.isdigit() and int(p) < MAX_DEVICES)


@lru_cache(maxsize=4096)
def layout_of(annotation: str, count: int) -> Layout:
    """Return a node's GPUs from its devices annotation, or *count* equal ones where it has none.

    An annotation that cannot be read is treated as absent: the count alone is then believed.
    """
    if annotation:
        try:
            devices = _DECODER.decode(annotation)
        except msgspec.DecodeError:
            devices = []
        gpus = [d for d in devices if d.kind == "gpu" and 0 <= d.index < MAX_DEVICES]
        if gpus:
            cards = tuple(
                Card(d.index, d.nvlink, d.numa, d.pcie, d.model, d.memory)
                for d in sorted(gpus, key=lambda d: d.index)
            )
            return Layout(cards, mask_of(d.index for d in gpus if d.healthy))
    if count <= 0:
        return NO_DEVICES
    usable = min(count, MAX_DEVICES)
    return Layout(tuple(Card(i, 0, 0, 0, "", 0) for i in range(usable)), (1 << usable) - 1)


@lru_cache(maxsize=65536)
def choose(layout: Layout, free: int, count: int) -> int:
    """Return *count* of the *free* devices, close together.

    The NVLink domain that holds them all with the least left over wins; inside it the NUMA node
    likewise. Where no single domain holds them, the fullest free domains are taken first.

    Raises:
        ValueError: when fewer than *count* devices are free.
    """
    cards = [card for card in layout.cards if free >> card.number & 1]
    if len(cards) < count:
        raise ValueError(f"{count} devices asked for, {len(cards)} are free")
    return mask_of(card.number for card in _closest(cards, count, ("nvlink", "numa", "pcie")))


def _closest(cards: list[Card], count: int, levels: tuple[str, ...]) -> list[Card]:
    if not levels or count == len(cards):
        return cards[:count]
    parts: dict[int, list[Card]] = {}
    for card in cards:
        parts.setdefault(getattr(card, levels[0]), []).append(card)
    chosen: list[Card] = []
    while count:
        number = _next_part(parts, count)
        part = parts.pop(number)
        taken = _closest(part, min(count, len(part)), levels[1:])
        chosen += taken
        count -= len(taken)
    return chosen


def _next_part(parts: Mapping[int, list[Card]], count: int) -> int:
    holding = [number for number, cards in parts.items() if len(cards) >= count]
    if holding:
        return min(holding, key=lambda number: (len(parts[number]), number))
    return min(parts, key=lambda number: (-len(parts[number]), number))
