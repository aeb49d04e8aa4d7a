"""Lockstep's own policy: the core's ratings, kept between arrivals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.fgd.nodes import ListedNodes
from bench.fgd.policies import Place, Ratings, place_of
from lockstep.scheduler.core.scoring.demand import Demand
from lockstep.scheduler.core.scoring.fragmentation import Foresight
from lockstep.scheduler.core.scoring.gpu_milli import Request
from lockstep.scheduler.core.util.array_types import FloatArray


class ForesightPlaces:
    """Takes the place that leaves the most for what usually comes."""

    def __init__(self, nodes: ListedNodes, usual: Demand) -> None:
        self._nodes = nodes
        self._foresight = Foresight(nodes, usual)
        self._ratings = Ratings(nodes, self._foresight)
        self._weighed = self._foresight.weighed
        self._bares: dict[Request, tuple[Request, FloatArray]] = {}

    def choose(self, request: Request) -> Place | None:
        """Return the place with the best rating, less the price of the node's model."""
        self._foresight.keep_up(self._nodes)
        if self._foresight.weighed != self._weighed:
            self._weighed = self._foresight.weighed
            self._ratings.forget()
        bare, barred = self._bare(request)
        rating, card = self._ratings.of(bare)
        net = rating - (request.gpu * self._foresight.price + barred)[self._nodes.model]
        row = int(net.argmax())
        if net[row] == -np.inf:
            return None
        return place_of(self._nodes, row, int(card[row]), request)

    def changed(self, row: int) -> None:
        """Note that what is free on a row is not what it was."""
        self._ratings.changed(row)

    def _bare(self, request: Request) -> tuple[Request, FloatArray]:
        """Return the request for any model, and what bars it from each model.

        Which models will do changes nothing in the ratings, so requests that differ only in that
        share them.
        """
        found = self._bares.get(request)
        if found is None:
            barred = np.where(self._nodes.allowed(request), 0.0, np.inf)
            found = self._bares[request] = (replace(request, models=frozenset()), barred)
        return found
