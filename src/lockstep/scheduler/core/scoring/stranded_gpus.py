"""How much of a node's idle GPUs will stay idle because its CPU or its memory runs out first."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np

from lockstep.scheduler.core.scoring.demand import PerGpu
from lockstep.scheduler.core.scoring.gpu_milli import WHOLE
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray

REACH = 5.0
"""Standard deviations beyond which an outcome is taken as certain."""
STEPS = 200
"""Points of the table for one standard deviation."""


def _loss_table() -> FloatArray:
    points = np.arange(-int(REACH * STEPS), int(REACH * STEPS) + 1) / STEPS
    return np.array(
        [exp(-z * z / 2) / sqrt(2 * pi) - z * erfc(z / sqrt(2)) / 2 for z in points.tolist()]
    )


_LOSS = _loss_table()
"""By how much a standard normal is expected to exceed each of the points; nothing at the last."""
_LOSS[-1] = 0.0


class Shortage:
    """What is expected to be stranded, by what usually goes with a GPU of several resources."""

    def __init__(self, *beside: PerGpu) -> None:
        used = [(i, per) for i, per in enumerate(beside) if per.mean > 0]
        self._which = [i for i, _ in used]
        mean = np.array([per.mean for _, per in used]).reshape(-1, 1) / WHOLE
        deviation = np.array([per.deviation for _, per in used]).reshape(-1, 1)
        self._mean = mean
        self._deviation = np.maximum(deviation, mean * 1e-3) / sqrt(WHOLE)

    def stranded(self, idle: IntArray, *left: IntArray) -> FloatArray:
        """Return the idle GPU milli that will find nothing *left* of some resource beside them.

        Over *idle* GPU milli the requests to come take a normal amount of each resource; the part
        of it beyond what is left strands GPUs in proportion.
        """
        if not self._which:
            return np.zeros(len(idle))
        spread = self._deviation * np.sqrt(idle + 1e-9)
        distance = (np.stack([left[i] for i in self._which]) - self._mean * idle) / spread
        places = (np.minimum(np.maximum(distance, -REACH), REACH) + REACH) * STEPS
        excess = np.maximum(_LOSS[places.astype(np.int64)], -distance)
        found: FloatArray = (excess * spread / self._mean).sum(axis=0)
        return found
