"""Fragmentation gradient descent, the published score ("Beware of Fragmentation", section 4).

A node's fragmentation is the GPU milli that a typical request cannot use there, averaged over the
requests that usually come. The place that adds the least of it wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from bench.fgd.nodes import ListedNodes
from lockstep.scheduler.core.scoring.fragmentation import NO_CARD
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE, Request
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

POPULARITY = 0.95
"""Share of all pods that the typical requests stand for, the most popular first."""


def typical_requests(requests: Iterable[Request]) -> list[tuple[Request, float]]:
    """Return the most popular requests and the share of each, which add up to one.

    Memory does not tell requests apart here: the published score does not look at it.
    """
    counted = Counter(
        Request(r.cpu, 0, r.cards, r.milli, r.models if r.cards else frozenset()) for r in requests
    )
    total = counted.total()
    ordered = sorted(
        counted.items(),
        key=lambda item: (
            item[1],
            item[0].cpu,
            item[0].milli,
            item[0].cards,
            sorted(item[0].models),
        ),
        reverse=True,
    )
    chosen: list[tuple[Request, float]] = []
    reached = 0
    for request, count in ordered:
        if reached >= POPULARITY * total:
            break
        chosen.append((request, count))
        reached += count
    return [(request, count / reached) for request, count in chosen]


class GradientDescent:
    """Rates a place by how much less fragmented the node gets, in whole per cent of a sigmoid."""

    def __init__(self, nodes: ListedNodes, typical: Iterable[tuple[Request, float]]) -> None:
        wanted = [(request, share) for request, share in typical if request.cards]
        self._levels, self._level = np.unique(
            np.array([r.milli for r, _ in wanted], dtype=np.int64), return_inverse=True
        )
        self._cpu = np.array([r.cpu for r, _ in wanted], dtype=np.int64)
        self._cards = np.array([r.cards for r, _ in wanted], dtype=np.int64)
        self._weights: FloatArray = np.zeros((len(nodes.models), len(wanted)))
        for i, (request, share) in enumerate(wanted):
            self._weights[nodes.allowed(request), i] = share

    def usable(self, cpu: IntArray, milli: IntArray, model: IntArray) -> FloatArray:
        """Return the idle GPU milli of nodes that an average typical request could use.

        What is idle and not usable is the node's fragmentation.
        """
        enough = milli[:, None, :] >= self._levels[None, :, None]
        count = enough.sum(axis=2)[:, self._level]
        above = (milli[:, None, :] * enough).sum(axis=2)[:, self._level]
        held = (count >= self._cards) & (cpu[:, None] >= self._cpu)
        found: FloatArray = (self._weights[model] * held * above).sum(axis=1)
        return found

    def rate(
        self, nodes: ListedNodes, rows: IntArray, request: Request
    ) -> tuple[FloatArray, IntArray]:
        """Rate by the fall of fragmentation that the request brings about."""
        cpu, model, milli = nodes.cpu[rows], nodes.model[rows], nodes.milli[rows]
        before = milli.sum(axis=1) - self.usable(cpu, milli, model)
        spot, card = _spots(milli, request)
        after_milli = milli[spot]
        if request.shared:
            after_milli[np.arange(len(spot)), card] -= request.milli
        elif request.cards:
            _take_whole(after_milli, request.cards)
        left = cpu[spot] - request.cpu
        after = after_milli.sum(axis=1) - self.usable(left, after_milli, model[spot])
        fall = (before[spot] - after) / 1000.0
        rating = np.trunc(100.0 / (1.0 + np.exp(-fall)))
        return _best_of_each(len(rows), spot, card, rating)


def _spots(milli: IntArray, request: Request) -> tuple[IntArray, IntArray]:
    """Return the choices as pairs of a row's index and a card: one for each amount that is left."""
    if not request.shared:
        return np.arange(len(milli)), np.full(len(milli), NO_CARD)
    first = np.ones(milli.shape, dtype=bool)
    for card in range(1, milli.shape[1]):
        first[:, card] = (milli[:, :card] != milli[:, card : card + 1]).all(axis=1)
    spot, card_of = np.nonzero(first & (milli >= request.milli))
    return spot, card_of


def _take_whole(milli: IntArray, cards: int) -> None:
    whole = milli == WHOLE
    milli[whole & (whole.cumsum(axis=1) <= cards)] = 0


def _best_of_each(
    count: int, spot: IntArray, card: IntArray, rating: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return each row's best choice, the first among equals."""
    best = np.full(count, -np.inf)
    np.maximum.at(best, spot, rating)
    chosen = np.full(count, NO_CARD)
    top = np.flatnonzero(rating == best[spot])[::-1]
    chosen[spot[top]] = card[top]
    return best, chosen
