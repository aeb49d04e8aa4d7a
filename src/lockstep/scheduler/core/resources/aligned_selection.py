"""Which devices of a node a pod gets that takes NICs or says how close together they must be.

What is picked leaves most to later pods: whole domains and roots before parts of them, the
fullest first, and never a device without which the next pods alike would find no room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from lockstep.scheduler.core.resources.alignment import (
    DeviceAsk,
    Stock,
    by_domain,
    capacity,
    parts,
    room_in,
    splits,
)
from lockstep.scheduler.core.resources.device_allocation import Grant
from lockstep.scheduler.core.resources.device_inventory import Card, Nic
from lockstep.scheduler.core.resources.nearest_gpus import closest
from lockstep.scheduler.core.util.bitmask import mask_of

SPLITS = 512
"""Ways of splitting a pod over PCIe roots that are compared with each other."""
CHOICES = 32
"""Choices offered for one pod, the tidiest first."""

Pick = tuple[tuple[int, ...], Grant]
"""How untidy what a pick leaves behind is, and what it takes."""


@lru_cache(maxsize=65536)
def choices(stock: Stock, ask: DeviceAsk, more: int) -> tuple[Grant, ...]:
    """Return devices for one pod that leave room for *more* pods alike, the tidiest first."""
    found = sorted(islice(_picks(stock, ask), SPLITS), key=lambda pick: pick[0])
    left = (grant for _, grant in found if not more or _after(stock, ask, grant) >= more)
    return tuple(islice(left, CHOICES))


def _after(stock: Stock, ask: DeviceAsk, grant: Grant) -> int:
    """Return how many pods alike find room once one has been given its devices."""
    layout = stock.layout
    rooms = tuple(
        room - (grant.gpus >> card.number & 1)
        for card, room in zip(layout.cards, stock.rooms, strict=True)
    )
    quotas = tuple(
        quota - (socket.number == grant.socket)
        for socket, quota in zip(layout.sockets, stock.quotas, strict=False)
    )
    return capacity(Stock(layout, rooms, stock.nics & ~grant.nics, quotas), ask)


def _picks(stock: Stock, ask: DeviceAsk) -> Iterator[Pick]:
    for part in parts(stock, ask):
        if min(part.quota, room_in(part, ask)) < 1:
            continue
        spare = len(part.cards) - ask.cards if ask.cards else len(part.nics) - ask.nics
        for domain, cards in sorted(by_domain(part.cards, ask).items()) if ask.cards else [(0, [])]:
            if len(cards) < ask.cards:
                continue
            untidy = (spare, len(cards) - ask.cards)
            if ask.paired:
                picks = _split(cards, part.nics, ask, stock.begun)
            else:
                picks = _near(cards, part.nics, ask, stock.begun)
            for number, (cost, chosen, nics) in enumerate(picks):
                grant = Grant(
                    mask_of(card.number for card in chosen),
                    mask_of(nic.number for nic in nics),
                    part.socket,
                )
                yield (*untidy, *cost, part.socket, domain, number), grant


Taken = tuple[tuple[int, ...], list[Card], list[Nic]]


def _split(
    cards: Sequence[tuple[Card, int]], nics: Sequence[Nic], ask: DeviceAsk, begun: int
) -> Iterator[Taken]:
    """Yield ways to take GPUs and NICs evenly from the same PCIe roots."""
    roots = sorted({card.pcie for card, _ in cards})
    there = [[one for one in cards if one[0].pcie == root] for root in roots]
    beside = [[nic for nic in nics if nic.pcie == root] for root in roots]
    offers = [(len(g), len(n)) for g, n in zip(there, beside, strict=True)]
    for split in splits(offers, ask):
        left = touched = 0
        chosen: list[Card] = []
        taken: list[Nic] = []
        for (g, n), of, wired in zip(split, there, beside, strict=True):
            if g:
                touched += 1
                left += len(of) - g + len(wired) - n
                chosen += _fullest(of, g, ask, begun)
                taken += wired[:n]
        yield (left, touched), chosen, taken


def _fullest(
    cards: Sequence[tuple[Card, int]], count: int, ask: DeviceAsk, begun: int
) -> list[Card]:
    if ask.shared and ask.cards > 1:
        # Several cards for each pod can only be told apart while the roomiest have room.
        order = sorted(cards, key=lambda one: (-one[1], one[0].number))
    else:
        order = sorted(cards, key=lambda one: (~begun >> one[0].number & 1, one[1], one[0].number))
    return [card for card, _ in order[:count]]


def _near(
    cards: Sequence[tuple[Card, int]], nics: Sequence[Nic], ask: DeviceAsk, begun: int
) -> Iterator[Taken]:
    """Yield GPUs close together, and NICs as near to them as there are."""
    if len(nics) < ask.nics:
        return
    if ask.shared:
        chosen = _fullest(cards, ask.cards, ask, begun)
    else:
        wired = {nic.pcie for nic in nics}
        chosen = closest([card for card, _ in cards], ask.cards, wired if not ask.nics else set())
    roots, sockets = {card.pcie for card in chosen}, {card.numa for card in chosen}
    busy = {card.pcie for card, _ in cards} - roots
    order = sorted(
        nics,
        key=lambda nic: (
            nic.pcie not in roots,
            nic.numa not in sockets,
            nic.pcie in busy,
            nic.number,
        ),
    )
    yield (), chosen, order[: ask.nics]
