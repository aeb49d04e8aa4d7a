"""How close together the devices of one pod must be, and how many such pods a node holds.

``nvlink``: its GPUs are in one NVLink domain. ``pcie``: each GPU has a NIC of the pod under its
PCIe root and each NIC a GPU, evenly: with *g* GPUs and *n* NICs at most ceil(g/n) GPUs lean on one
NIC, or ceil(n/g) NICs on one GPU. ``numa``: CPUs, memory, GPUs and NICs are of one NUMA node.

Counts are exact for pods alike: what is promised can be handed out by index. Where the search
for an uneven split would take too long it promises less, never more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from lockstep.api.alignment import AlignmentWish
from lockstep.api.names import ALIGN_PREFERRED_ANNOTATION, ALIGN_REQUIRED_ANNOTATION
from lockstep.scheduler.core.resources.device_inventory import Card, Layout, Nic

RELATIONS = ("numa", "nvlink", "pcie")
"""In the order in which they are given up where they are only preferred."""
PLENTY = 1 << 30
"""More pods than any node holds: the count of what is not asked for."""
SEARCH_LIMIT = 20_000
"""Splits looked at for one node before the best found so far is promised."""


class Alignment(NamedTuple):
    """What a pod says of how close together its devices are to be."""

    required: frozenset[str] = frozenset()
    preferred: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    """Words that name no relation."""

    @classmethod
    def asked(cls, wish: AlignmentWish | None) -> Alignment:
        """Take it from what a gang or one of its groups says."""
        if wish is None:
            return NO_ALIGNMENT
        must = frozenset[str](wish.required)
        return cls(must, frozenset[str](wish.preferred) - must)

    @classmethod
    def of(cls, annotations: Mapping[str, str]) -> Alignment:
        """Read it from a pod's annotations."""
        must_be = annotations.get(ALIGN_REQUIRED_ANNOTATION, "")
        had_better_be = annotations.get(ALIGN_PREFERRED_ANNOTATION, "")
        if not (must_be or had_better_be):
            return NO_ALIGNMENT
        required, preferred = _words(must_be), _words(had_better_be)
        if not required and not preferred:
            return NO_ALIGNMENT
        unknown = sorted({word for word in (*required, *preferred) if word not in RELATIONS})
        known = frozenset(RELATIONS)
        must = known & frozenset(required)
        return cls(must, (known & frozenset(preferred)) - must, tuple(unknown))

    @property
    def spelling(self) -> tuple[list[str], ...]:
        """Return it in a form of which equal ones have but one."""
        return sorted(self.required), sorted(self.preferred), list(self.unknown)

    def where_it_matters(self, cards: int, nics: int, *, host: bool) -> Alignment:
        """Return what of it says anything about a pod with so many GPUs (or shares) and NICs, and
        with CPUs or memory of the *host*, or without.
        """
        matters = {
            name
            for name, it_does in (
                ("nvlink", cards > 1),
                ("pcie", cards > 0 and nics > 0),
                ("numa", host or cards + nics > 1),
            )
            if it_does
        }
        return Alignment(self.required & matters, self.preferred & matters, self.unknown)


NO_ALIGNMENT = Alignment()


@lru_cache(maxsize=256)
def concessions(preferred: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Return what may be kept of relations, all of them first and none of them last.

    As many as can be are kept; of as many, those that ``RELATIONS`` names last.
    """
    names = [name for name in reversed(RELATIONS) if name in preferred]
    sizes = range(len(names), -1, -1)
    return tuple(frozenset(kept) for size in sizes for kept in combinations(names, size))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class DeviceAsk(NamedTuple):
    """What one pod takes of a node's devices, and which of them must be together."""

    cards: int
    nics: int
    relations: frozenset[str]
    shared: bool = False
    """Whether it takes shares of the cards rather than whole ones."""

    @property
    def ratio(self) -> int:
        """Return how many of the more numerous devices lean on one of the others at most."""
        return -(-max(self.cards, self.nics) // min(self.cards, self.nics))

    @property
    def paired(self) -> bool:
        """Return whether its GPUs and NICs must share PCIe roots."""
        return "pcie" in self.relations and self.cards > 0 and self.nics > 0


class Stock(NamedTuple):
    """What a node has left, as far as pods of one kind go by it."""

    layout: Layout
    rooms: tuple[int, ...]
    """By card of the layout how many such pods it could still hold: 0 or 1 for whole ones."""
    nics: int
    """The mask of the free NICs."""
    quotas: tuple[int, ...] = ()
    """By socket of the layout how many such pods its CPUs and memory hold."""
    begun: int = 0
    """The mask of the cards of which a pod has a share; for pods that take shares."""


class DevicePart(NamedTuple):
    """The devices that one pod may be given together: those of a NUMA node, or all."""

    socket: int
    """The number of the NUMA node; -1 where it may be any."""
    cards: tuple[tuple[Card, int], ...]
    """With the pods that each has room for, at least one."""
    nics: tuple[Nic, ...]
    quota: int


def parts(stock: Stock, ask: DeviceAsk) -> Iterator[DevicePart]:
    """Yield the parts of a node, each pod being given all that it asks for within one of them."""
    layout = stock.layout
    cards = tuple((c, room) for c, room in zip(layout.cards, stock.rooms, strict=True) if room > 0)
    nics = tuple(nic for nic in layout.nics if stock.nics >> nic.number & 1)
    if "numa" not in ask.relations:
        yield DevicePart(-1, cards, nics, PLENTY)
        return
    for socket, quota in zip(layout.sockets, stock.quotas, strict=True):
        number = socket.number
        yield DevicePart(
            number,
            tuple(one for one in cards if one[0].numa == number),
            tuple(nic for nic in nics if nic.numa == number),
            quota,
        )


@lru_cache(maxsize=65536)
def capacity(stock: Stock, ask: DeviceAsk) -> int:
    """Return how many pods alike a node holds, all of them aligned."""
    return sum(min(part.quota, room_in(part, ask)) for part in parts(stock, ask))


def room_in(part: DevicePart, ask: DeviceAsk) -> int:
    """Return how many pods alike the devices of one part hold."""
    if ask.paired:
        return _paired(part, ask)
    room = len(part.nics) // ask.nics if ask.nics else PLENTY
    if ask.cards:
        domains = by_domain(part.cards, ask)
        room = min(room, sum(_handfuls([r for _, r in d], ask.cards) for d in domains.values()))
    return room


def by_domain(
    cards: Sequence[tuple[Card, int]], ask: DeviceAsk
) -> dict[int, list[tuple[Card, int]]]:
    """Return cards by their NVLink domain where it matters, else all of them as one."""
    found: dict[int, list[tuple[Card, int]]] = {}
    for one in cards:
        found.setdefault(one[0].nvlink if "nvlink" in ask.relations else 0, []).append(one)
    return found


def _handfuls(rooms: Sequence[int], size: int) -> int:
    """Return how many pods find room that take a place on *size* different cards each."""
    found = sum(rooms) // size
    while True:
        fewer = sum(min(room, found) for room in rooms) // size
        if fewer == found:
            return found
        found = fewer


def _paired(part: DevicePart, ask: DeviceAsk) -> int:
    domains = by_domain(part.cards, ask)
    roots = [{card.pcie for card, _ in cards} for cards in domains.values()]
    apart = sum(map(len, roots)) == len(set().union(*roots))
    larger, smaller = max(ask.cards, ask.nics), min(ask.cards, ask.nics)
    if larger % smaller or not apart or (ask.shared and ask.cards > 1):
        return _Uneven(part, ask).count()
    # An even split is the same at every root: so many GPUs with so many NICs, in workloads.
    gpus, nics = (ask.ratio, 1) if ask.cards >= ask.nics else (1, ask.ratio)
    total = 0
    for cards in domains.values():
        workloads = 0
        for root in {card.pcie for card, _ in cards}:
            there = sum(room for card, room in cards if card.pcie == root)
            workloads += min(there // gpus, sum(nic.pcie == root for nic in part.nics) // nics)
        total += workloads // smaller
    return total


class Cell(NamedTuple):
    """Cards of one NVLink domain under one PCIe root."""

    domain: int
    root: int
    rooms: tuple[int, ...]
    """The roomiest first."""


Split = tuple[tuple[int, int], ...]
"""By PCIe root how many cards and how many NICs of it one pod takes."""


def splits(offers: Sequence[tuple[int, int]], ask: DeviceAsk) -> Iterator[Split]:
    """Yield the ways to take a pod's cards and NICs, evenly, from roots that offer so many each.

    Those come first that take most from the first roots.
    """
    yield from _splits(tuple(offers), ask.cards, ask.nics, ask)


def _splits(
    offers: tuple[tuple[int, int], ...], cards: int, nics: int, ask: DeviceAsk
) -> Iterator[Split]:
    if not offers:
        if not cards and not nics:
            yield ()
        return
    if sum(c for c, _ in offers) < cards or sum(n for _, n in offers) < nics:
        return
    most_cards, most_nics = min(offers[0][0], cards), min(offers[0][1], nics)
    for g in range(most_cards, -1, -1):
        for n in range(most_nics, -1, -1):
            if even(g, n, ask):
                for rest in _splits(offers[1:], cards - g, nics - n, ask):
                    yield ((g, n), *rest)


def even(cards: int, nics: int, ask: DeviceAsk) -> bool:
    """Return whether so many cards and NICs under one root lean on each other as asked."""
    more, fewer = (cards, nics) if ask.cards >= ask.nics else (nics, cards)
    return fewer <= more <= ask.ratio * fewer


class _Uneven:
    """Looks through the ways of splitting pods over the PCIe roots, where no formula tells."""

    def __init__(self, part: DevicePart, ask: DeviceAsk) -> None:
        self._ask = ask
        self._left = SEARCH_LIMIT
        self._known: dict[tuple[tuple[Cell, ...], tuple[tuple[int, int], ...]], int] = {}
        rooms: dict[tuple[int, int], list[int]] = {}
        for domain, cards in by_domain(part.cards, ask).items():
            for card, room in cards:
                rooms.setdefault((domain, card.pcie), []).append(room)
        self._cells = tuple(
            Cell(*key, tuple(sorted(found, reverse=True))) for key, found in sorted(rooms.items())
        )
        roots = sorted({cell.root for cell in self._cells})
        self._nics = tuple((root, sum(n.pcie == root for n in part.nics)) for root in roots)

    def count(self) -> int:
        """Return how many pods find room."""
        return self._most(self._cells, self._nics)

    def _most(self, cells: tuple[Cell, ...], nics: tuple[tuple[int, int], ...]) -> int:
        state = cells, nics
        if state in self._known:
            return self._known[state]
        rooms = [room for cell in cells for room in cell.rooms]
        limit = min(
            _handfuls(rooms, self._ask.cards),
            sum(number for _, number in nics) // self._ask.nics,
        )
        best = 0
        for rest in self._next(cells, dict(nics)):
            if best == limit or self._left <= 0:
                break
            self._left -= 1
            best = max(best, 1 + self._most(*rest))
        self._known[state] = best
        return best

    def _next(
        self, cells: tuple[Cell, ...], nics: dict[int, int]
    ) -> Iterator[tuple[tuple[Cell, ...], tuple[tuple[int, int], ...]]]:
        """Yield what is left once one more pod has been given its devices."""
        for domain in sorted({cell.domain for cell in cells}):
            here = [cell for cell in cells if cell.domain == domain]
            offers = [(sum(r > 0 for r in cell.rooms), nics[cell.root]) for cell in here]
            for split in splits(offers, self._ask):
                taken = {cell: took for cell, took in zip(here, split, strict=True) if any(took)}
                less = {cell.root: n for cell, (_, n) in taken.items()}
                yield (
                    tuple(_without(c, taken[c][0]) if c in taken else c for c in cells),
                    tuple((root, number - less.get(root, 0)) for root, number in nics.items()),
                )


def _without(cell: Cell, number: int) -> Cell:
    """Return a cell with one place less on so many of its cards, the roomiest."""
    fewer = [room - 1 for room in cell.rooms[:number]] + list(cell.rooms[number:])
    return cell._replace(rooms=tuple(sorted(fewer, reverse=True)))
