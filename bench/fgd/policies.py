"""Simple policies to compare with, and how a rating becomes a place.

A rating policy rates the nodes for a request; the highest rating wins, the smallest row among
equals. A rating depends on nothing but the node's own state, so it is kept until that node changes.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple, Protocol

import numpy as np

from bench.fgd.nodes import ListedNodes
from lockstep.scheduler.core.scoring.fragmentation import NO_CARD
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

LARGEST_CPU = 128_000
LARGEST_GPU = 8_000
"""What best fit and dot product divide by: the published program's largest node, in milli."""


class Place(NamedTuple):
    """A node's row and the cards to take there."""

    row: int
    cards: tuple[int, ...]


class Policy(Protocol):
    """Chooses places."""

    def choose(self, request: Request) -> Place | None:
        """Return the place for *request*, or None when no node has room."""
        ...

    def changed(self, row: int) -> None:
        """Note that what is free on a row is not what it was."""
        ...


class Rating(Protocol):
    """Rates places."""

    def rate(
        self, nodes: ListedNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Return for each of *rows*, all of which fit, its rating and the card to share."""
        ...


def tightest_card(nodes: ListedNodes, rows: IntArray, request: Request) -> IntArray:
    """Return for each row the card with the least left that holds the share."""
    if not request.shared:
        return np.full(len(rows), NO_CARD)
    free = nodes.milli[rows]
    tightest: IntArray = np.where(free >= request.milli, free, WHOLE + 1).argmin(axis=1)
    return tightest


class BestFit:
    """Leaves the least CPU and GPU, each counted by the largest node, in whole per cent."""

    def rate(
        self, nodes: ListedNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Rate by what would be left."""
        cpu = (nodes.cpu[rows] - request.cpu) / LARGEST_CPU * 0.5
        gpu = (nodes.idle[rows] - request.gpu) / LARGEST_GPU * 0.5
        return np.trunc((1.0 - (cpu + gpu)) * 100.0), tightest_card(nodes, rows, request)


class DotProduct:
    """Avoids nodes whose free CPU and GPU point where the request points."""

    def rate(
        self, nodes: ListedNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Rate by one minus the product, in whole per cent."""
        cpu = (nodes.cpu[rows] / LARGEST_CPU) * (request.cpu / LARGEST_CPU)
        gpu = (nodes.idle[rows] / LARGEST_GPU) * (request.gpu / LARGEST_GPU)
        return np.trunc((1.0 - (cpu + gpu) / 2) * 100.0), tightest_card(nodes, rows, request)


class RandomPlaces:
    """Takes any node that has room, and any card on it that holds the share."""

    def __init__(self, nodes: ListedNodes, random: Random) -> None:
        self._nodes = nodes
        self._random = random

    def choose(self, request: Request) -> Place | None:
        """Return one of the places, all equally likely by node."""
        rows = np.flatnonzero(self._nodes.fits(request, slice(None)))
        if not len(rows):
            return None
        row = int(self._random.choice(rows))
        card = NO_CARD
        if request.shared:
            card = int(self._random.choice(np.flatnonzero(self._nodes.milli[row] >= request.milli)))
        return place_of(self._nodes, row, card, request)

    def changed(self, row: int) -> None:
        """Need no note: every choice looks at all nodes."""


class Ratings:
    """Every request's ratings of all nodes, brought up to date when the request comes again."""

    def __init__(self, nodes: ListedNodes, rating: Rating) -> None:
        self._nodes = nodes
        self._rating = rating
        self._changed: list[int] = []
        self._known: dict[Request, _Known] = {}

    def of(self, request: Request) -> tuple[FloatArray, IntArray]:
        """Return each node's rating, minus infinity where there is no room, and card to share."""
        known = self._known.get(request)
        if known is None:
            known = self._known[request] = _Known(len(self._nodes))
            self._rate(known, request, np.arange(len(self._nodes)))
        elif known.seen < len(self._changed):
            rows = np.array(list(set(self._changed[known.seen :])), dtype=np.int64)
            self._rate(known, request, rows)
        known.seen = len(self._changed)
        return known.rating, known.card

    def changed(self, row: int) -> None:
        """Note that what is free on a row is not what it was."""
        self._changed.append(row)

    def forget(self) -> None:
        """Rate everything anew."""
        self._known.clear()
        self._changed.clear()

    def _rate(self, known: _Known, request: Request, rows: IntArray) -> None:
        fits = self._nodes.fits(request, rows)
        known.rating[rows[~fits]] = -np.inf
        rows = rows[fits]
        if len(rows):
            known.rating[rows], known.card[rows] = self._rating.rate(self._nodes, rows, request)


class _Known:
    """One request's ratings, up to the change numbered *seen*."""

    __slots__ = ("card", "rating", "seen")

    def __init__(self, count: int) -> None:
        self.rating: FloatArray = np.full(count, -np.inf)
        self.card: IntArray = np.full(count, NO_CARD)
        self.seen = 0


class Rated:
    """Takes the place with the best rating, the smallest row among equals."""

    def __init__(self, nodes: ListedNodes, rating: Rating) -> None:
        self._nodes = nodes
        self._ratings = Ratings(nodes, rating)

    def choose(self, request: Request) -> Place | None:
        """Return the place with the best rating."""
        rating, card = self._ratings.of(request)
        row = int(rating.argmax())
        if rating[row] == -np.inf:
            return None
        return place_of(self._nodes, row, int(card[row]), request)

    def changed(self, row: int) -> None:
        """Note that what is free on a row is not what it was."""
        self._ratings.changed(row)


def place_of(nodes: ListedNodes, row: int, card: int, request: Request) -> Place:
    """Return the place on a row: the *card* to share, or as many free ones as are asked for."""
    return Place(row, (card,) if card != NO_CARD else nodes.whole_cards(row, request.cards))
