"""Which GPUs of a node to take for pods that do not say how close together they must be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from lockstep.scheduler.core.resources.device_inventory import Card, Layout
from lockstep.scheduler.core.util.bitmask import mask_of


@lru_cache(maxsize=65536)
def choose(layout: Layout, free: int, count: int, free_nics: int = 0) -> int:
    """Return *count* of the *free* devices, close together, for a pod without NICs.

    The NVLink domain that holds them all with the least left over wins; inside it the NUMA node
    likewise. Where no single domain holds them, the fullest free domains are taken first. Of PCIe
    roots alike those without *free_nics* come first: others can do more with the rest.

    Raises:
        ValueError: when fewer than *count* devices are free.
    """
    cards = [card for card in layout.cards if free >> card.number & 1]
    if len(cards) < count:
        raise ValueError(f"{count} devices asked for, {len(cards)} are free")
    wired = {nic.pcie for nic in layout.nics if free_nics >> nic.number & 1}
    return mask_of(card.number for card in closest(cards, count, wired))


def closest(cards: list[Card], count: int, wired: Collection[int] = ()) -> list[Card]:
    """Return *count* of the cards, close together, rather from roots that are not *wired*."""
    return _closest(cards, count, ("nvlink", "numa", "pcie"), wired)


def _closest(
    cards: list[Card], count: int, levels: tuple[str, ...], wired: Collection[int]
) -> list[Card]:
    if not levels or count == len(cards):
        return cards[:count]
    parts: dict[int, list[Card]] = {}
    for card in cards:
        parts.setdefault(getattr(card, levels[0]), []).append(card)
    chosen: list[Card] = []
    while count:
        number = _next_part(parts, count, wired if levels[0] == "pcie" else ())
        part = parts.pop(number)
        taken = _closest(part, min(count, len(part)), levels[1:], wired)
        chosen += taken
        count -= len(taken)
    return chosen


def _next_part(parts: Mapping[int, list[Card]], count: int, wired: Collection[int]) -> int:
    holding = [number for number, cards in parts.items() if len(cards) >= count]
    if holding:
        return min(holding, key=lambda number: (len(parts[number]), number in wired, number))
    return min(parts, key=lambda number: (-len(parts[number]), number in wired, number))
