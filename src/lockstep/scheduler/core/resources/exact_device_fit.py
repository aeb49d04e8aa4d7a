"""Whether pods of several kinds find their devices on one node together, exactly.

Pods that take NICs or say how close together their devices must be compete for positions inside a
node: kinds that fit one by one need not fit together, and whether they do may hang on what the
first is given. All that one pod may be given is gone through, pod by pod. Devices that are alike
stand for each other, and so do positions (sockets, NVLink domains, PCIe roots) with the same left
in them; what was found for one state of a node holds for every node that comes to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from lockstep.scheduler.core.resources.alignment import DeviceAsk, even
from lockstep.scheduler.core.resources.columns import Columns
from lockstep.scheduler.core.resources.device_allocation import NO_SOCKET, Grant
from lockstep.scheduler.core.resources.gpu_shares import GpuShare
from lockstep.scheduler.core.resources.share_packing import held_together
from lockstep.scheduler.core.util.array_types import IntArray
from lockstep.scheduler.core.util.bitmask import mask_of

WAYS = 10_000
"""Ways to give a pod its devices that are looked at for one node before giving up."""
KNOWN_LIMIT = 100_000
"""Answers kept for one mix of kinds; beyond it they are found afresh."""

T = TypeVar("T")
Labels = dict[int, int]


class PodKind(NamedTuple):
    """What one pod takes of a node's single devices."""

    ask: DeviceAsk
    share: GpuShare | None
    cpu: int = 0
    """Thousandths of CPUs and bytes that must come from its NUMA node, where it has one."""
    memory: int = 0

    @property
    def plain(self) -> bool:
        """Return whether any GPUs will do for it, wherever they are."""
        return not self.ask.relations and not self.ask.nics


class OpenCard(NamedTuple):
    """A GPU of which something is left; labels that no kind goes by are 0, and so are amounts."""

    numa: int
    nvlink: int
    root: int
    whole: bool
    compute: int
    memory: int
    number: int


class OpenNic(NamedTuple):
    """A free NIC."""

    numa: int
    root: int
    number: int


class OpenSocket(NamedTuple):
    """What a NUMA node has left for pods that must have it from there."""

    number: int
    cpu: int
    memory: int


class Left(NamedTuple):
    """What a node has left for some kinds of pods."""

    cards: tuple[OpenCard, ...]
    nics: tuple[OpenNic, ...]
    sockets: tuple[OpenSocket, ...]


class SearchBudget:
    """How many more ways may be looked at, and whether that was enough so far."""

    def __init__(self, ways: int = WAYS) -> None:
        self._allowed = ways
        self.used = 0
        self.sure = True

    def spend(self) -> bool:
        """Look at one more way; return whether that is allowed."""
        self.used += 1
        return not self.lost

    @property
    def lost(self) -> bool:
        """Return whether there are none left."""
        return self.used > self._allowed


def left_of(free: IntArray, kinds: Iterable[PodKind], columns: Columns) -> Left:
    """Return what a node (a column of *free*) has left, as far as pods of such kinds go by it."""
    known = list(kinds)
    relations = frozenset[str]().union(*(kind.ask.relations for kind in known))
    shares = [kind.share for kind in known if kind.share is not None]
    by_numa, by_nvlink = "numa" in relations, "nvlink" in relations
    by_root = any(kind.ask.paired for kind in known)
    compute, memory = any(s.compute for s in shares), any(s.memory for s in shares)
    layout, ids = columns.layouts[int(free[columns.layout_column])], columns.card_ids
    cards = (
        OpenCard(
            card.numa * by_numa,
            card.nvlink * by_nvlink,
            card.pcie * by_root,
            bool(free[ids["whole"][card.number]] > 0),
            int(free[ids["compute"][card.number]]) * compute,
            int(free[ids["memory"][card.number]]) * memory,
            card.number,
        )
        for card in layout.cards
        if card.number < columns.cards
    )
    nics = (
        OpenNic(nic.numa * by_numa, nic.pcie * by_root, nic.number)
        for nic in layout.nics
        if nic.number < len(columns.nic_ids) and free[columns.nic_ids[nic.number]] > 0
    )
    cpus, memories = columns.socket_ids["cpu"], columns.socket_ids["memory"]
    sockets = (
        OpenSocket(socket.number, int(free[cpus[place]]), int(free[memories[place]]))
        for place, socket in enumerate(layout.sockets[: len(cpus) if by_numa else 0])
    )
    usable = tuple(card for card in cards if card.whole or any(_fits(card, s) for s in shares))
    return Left(usable, tuple(nics), tuple(sockets))


def _fits(card: OpenCard, share: GpuShare | None) -> bool:
    if share is None:
        return card.whole
    return card.compute >= share.compute and card.memory >= share.memory


def ways(left: Left, kind: PodKind) -> Iterator[Grant]:
    """Yield what one pod may be given, of devices that are alike the first ones alone."""
    ask = kind.ask
    for socket in _sockets(left, kind):
        anywhere = socket == NO_SOCKET
        cards = [c for c in left.cards if _fits(c, kind.share) and (anywhere or c.numa == socket)]
        nics = [n for n in left.nics if anywhere or n.numa == socket]
        for domain in _domains(cards, ask):
            for chosen in _selections(_alike(domain), ask.cards):
                gpus = mask_of(card.number for card in chosen)
                for taken in _beside(chosen, nics, ask):
                    yield Grant(gpus, mask_of(nic.number for nic in taken), socket)


def _sockets(left: Left, kind: PodKind) -> list[int]:
    if "numa" not in kind.ask.relations:
        return [NO_SOCKET]
    return [s.number for s in left.sockets if s.cpu >= kind.cpu and s.memory >= kind.memory]


def _domains(cards: list[OpenCard], ask: DeviceAsk) -> list[list[OpenCard]]:
    if "nvlink" not in ask.relations or not ask.cards:
        return [cards]
    found: defaultdict[int, list[OpenCard]] = defaultdict(list)
    for card in cards:
        found[card.nvlink].append(card)
    return list(found.values())


def _beside(
    chosen: Sequence[OpenCard], nics: list[OpenNic], ask: DeviceAsk
) -> Iterator[list[OpenNic]]:
    """Yield the NICs that may go with some cards."""
    if not ask.paired:
        yield from _selections(_alike(nics), ask.nics)
        return
    roots = Counter(card.root for card in chosen)
    for taken in _selections(_alike([nic for nic in nics if nic.root in roots]), ask.nics):
        wired = Counter(nic.root for nic in taken)
        if all(even(count, wired[root], ask) for root, count in roots.items()):
            yield taken


def _alike(devices: Iterable[T]) -> list[list[T]]:
    """Return devices by what they are but for their number, which comes last in them."""
    found: defaultdict[Any, list[T]] = defaultdict(list)
    for device in devices:
        found[device[:-1]].append(device)  # type: ignore[index]  # a named tuple
    return list(found.values())


def _selections(classes: Sequence[list[T]], count: int) -> Iterator[list[T]]:
    """Yield the ways to take so many of classes of devices that are alike."""
    if count == 0:
        yield []
        return
    if sum(map(len, classes)) < count:
        return
    first, rest = classes[0], classes[1:]
    for number in range(min(len(first), count), -1, -1):
        for more in _selections(rest, count - number):
            yield first[:number] + more


def without(left: Left, grant: Grant, kind: PodKind) -> Left:
    """Return what is left once one pod has been given its devices."""
    share = kind.share
    cards = []
    for card in left.cards:
        if not grant.gpus >> card.number & 1:
            cards.append(card)
        elif share is not None:
            compute, memory = card.compute - share.compute, card.memory - share.memory
            cards.append(card._replace(whole=False, compute=compute, memory=memory))
    nics = tuple(nic for nic in left.nics if not grant.nics >> nic.number & 1)
    sockets = tuple(
        OpenSocket(s.number, s.cpu - kind.cpu, s.memory - kind.memory)
        if s.number == grant.socket
        else s
        for s in left.sockets
    )
    return Left(tuple(cards), nics, sockets)


def alike(left: Left) -> Left:
    """Return the one state that stands for this one and for those that differ in names alone.

    Positions are numbered by what is left in them; a numbering that tells two states apart that
    are alike costs time and nothing else.
    """
    inside: defaultdict[int, list[Hashable]] = defaultdict(list)
    for card in left.cards:
        inside[card.root].append((1, *card[3:6]))
    for nic in left.nics:
        inside[nic.root].append((0,))
    roots = _sorted(inside)
    sockets: defaultdict[int, list[Hashable]] = defaultdict(list)
    for socket in left.sockets:
        sockets[socket.number].append((2, socket.cpu, socket.memory))
    for card in left.cards:
        sockets[card.numa].append((1, roots[card.root], *card[3:6]))
    for nic in left.nics:
        sockets[nic.numa].append((0, roots[nic.root]))
    numa = _numbers(_sorted(sockets))
    domains: defaultdict[int, list[Hashable]] = defaultdict(list)
    for card in left.cards:
        domains[card.nvlink].append((numa[card.numa], roots[card.root], *card[3:6]))
    nvlink = _numbers(_sorted(domains))
    places: defaultdict[int, list[Hashable]] = defaultdict(list)
    for card in left.cards:
        places[card.root].append((1, numa[card.numa], nvlink[card.nvlink], *card[3:6]))
    for nic in left.nics:
        places[nic.root].append((0, numa[nic.numa]))
    root = _numbers(_sorted(places))
    cards = sorted((numa[c.numa], nvlink[c.nvlink], root[c.root], *c[3:6]) for c in left.cards)
    nics = sorted((numa[n.numa], root[n.root]) for n in left.nics)
    return Left(
        tuple(OpenCard(*card, number) for number, card in enumerate(cards)),
        tuple(OpenNic(*nic, number) for number, nic in enumerate(nics)),
        tuple(sorted(OpenSocket(numa[s.number], s.cpu, s.memory) for s in left.sockets)),
    )


def _sorted(inside: Mapping[int, list[Any]]) -> dict[int, tuple[Any, ...]]:
    return {label: tuple(sorted(found)) for label, found in inside.items()}


def _numbers(inside: Mapping[int, tuple[Any, ...]]) -> Labels:
    """Return labels in the order of what is inside them."""
    order = sorted(inside, key=lambda label: (inside[label], label))
    return {label: number for number, label in enumerate(order)}


class ExactFit:
    """Tells how many pods of some kinds a node holds together."""

    def __init__(self, kinds: tuple[PodKind, ...]) -> None:
        self.kinds = kinds
        placed = [number for number, kind in enumerate(kinds) if not kind.plain]
        self._order = sorted(placed, key=lambda number: _hardest_first(kinds[number]))
        self._known: dict[tuple[Left, tuple[int, ...]], bool] = {}

    def holds(self, left: Left, counts: Sequence[int], patience: SearchBudget) -> bool | None:
        """Return whether so many pods of each kind find room on a node; None when that is unknown.

        What the node has to offer by number alone is not looked at.
        """
        if len(self._known) > KNOWN_LIMIT:
            self._known.clear()
        return self._holds(alike(left), tuple(counts), patience)

    def most(
        self, left: Left, counts: Sequence[int], number: int, limit: int, patience: SearchBudget
    ) -> int:
        """Return how many pods of a kind surely find room beside others, *limit* at most."""
        least, most = 0, limit
        while least < most:
            one = (least + most + 1) // 2
            held = self.holds(left, (*counts[:number], one, *counts[number + 1 :]), patience)
            patience.sure &= held is not None
            least, most = (one, most) if held else (least, one - 1)
        return least

    def _holds(self, left: Left, counts: tuple[int, ...], patience: SearchBudget) -> bool | None:
        first = next((number for number in self._order if counts[number]), None)
        if first is None:
            return self._rest(left, counts)
        if self._too_many(left, counts):
            return False
        key = left, counts
        if key in self._known:
            return self._known[key]
        rest = (*counts[:first], counts[first] - 1, *counts[first + 1 :])
        unknown = False
        for after in self._next(left, self.kinds[first], patience):
            held = self._holds(after, rest, patience)
            if held:
                self._known[key] = True
                return True
            unknown |= held is None
        if unknown or patience.lost:
            return None
        self._known[key] = False
        return False

    def _next(self, left: Left, kind: PodKind, patience: SearchBudget) -> list[Left]:
        """Return the states that one more pod leads to, those with most left together first."""
        found: dict[Left, None] = {}
        for grant in ways(left, kind):
            if not patience.spend():
                break
            found[alike(without(left, grant, kind))] = None
        return sorted(found, key=_scattered)

    def _too_many(self, left: Left, counts: tuple[int, ...]) -> bool:
        asked = list(zip(self.kinds, counts, strict=True))
        whole = sum(kind.ask.cards * count for kind, count in asked if kind.share is None)
        nics = sum(kind.ask.nics * count for kind, count in asked)
        return whole > sum(card.whole for card in left.cards) or nics > len(left.nics)

    def _rest(self, left: Left, counts: tuple[int, ...]) -> bool | None:
        """Return whether those find room that take any cards: the smallest ones are held whole."""
        asked = list(zip(self.kinds, counts, strict=True))
        whole = sum(kind.ask.cards * count for kind, count in asked if kind.share is None)
        shares = [kind.share for kind, count in asked for _ in range(count) if kind.share]
        if whole > sum(card.whole for card in left.cards):
            return False
        untouched = sorted((c for c in left.cards if c.whole), key=lambda card: card.memory)
        gone = {card.number for card in untouched[:whole]}
        rooms = [(c.compute, c.memory, "") for c in left.cards if c.number not in gone]
        return held_together(rooms, shares)


def _hardest_first(kind: PodKind) -> tuple[int, ...]:
    return -len(kind.ask.relations), -kind.ask.cards, -kind.ask.nics


def _scattered(left: Left) -> int:
    cards = Counter((card.numa, card.nvlink, card.root) for card in left.cards if card.whole)
    return -sum(count * count for count in cards.values())


@lru_cache(maxsize=256)
def exact_fit(kinds: tuple[PodKind, ...]) -> ExactFit:
    """Return what tells of some kinds, with all that it has found so far."""
    return ExactFit(kinds)
