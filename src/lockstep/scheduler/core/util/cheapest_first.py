"""Choices of what goes, the cheapest first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Protocol, TypeVar


class Priced(Protocol):
    """What may go of one gang, and what that costs."""

    @property
    def key(self) -> Hashable:
        """Return what tells gangs apart."""

    @property
    def price(self) -> float:
        """Return what it costs that this goes."""


P = TypeVar("P", bound=Priced)


def cheapest_first(movers: Sequence[P]) -> Iterator[tuple[float, list[P]]]:
    """Yield each choice with at least one mover and at most one of each gang, and its price.

    *movers* are sorted by price. Gangs are numbered by the price of their cheapest mover. Every
    choice but the first follows from just one that is no dearer, which differs in its last gang: a
    dearer mover of that gang, one gang more, or the next gang instead (the enumeration of the
    smallest sums of one number out of each of several lists).
    """
    gangs: dict[Hashable, list[P]] = {}
    for mover in movers:
        gangs.setdefault(mover.key, []).append(mover)
    of = list(gangs.values())
    if not of:
        return
    heap: list[tuple[float, int, int, int, list[P]]] = [(of[0][0].price, 0, 0, 0, [])]
    numbers = count(1)  # equal prices: what was found first
    while heap:
        price, _, gang, which, before = heappop(heap)
        last = of[gang][which]
        choice = [*before, last]
        yield price, choice
        if which + 1 < len(of[gang]):
            dearer = price - last.price + of[gang][which + 1].price
            heappush(heap, (dearer, next(numbers), gang, which + 1, before))
        if gang + 1 < len(of):
            more = price + of[gang + 1][0].price
            heappush(heap, (more, next(numbers), gang + 1, 0, choice))
            if which == 0:
                heappush(heap, (more - last.price, next(numbers), gang + 1, 0, before))
