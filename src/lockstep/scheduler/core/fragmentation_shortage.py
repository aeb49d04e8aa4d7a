"""How much of a node's idle GPUs will stay idle because its CPU or its memory runs out first."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
"""By how much a standard normal is expected to exceed each of the points."""


def shortage(idle: IntArray, left: IntArray, mean: float, deviation: float) -> FloatArray:
    """Return the idle GPU milli that will find nothing *left* of another resource beside them.

    Requests to come take *mean* of that resource for each GPU, give or take *deviation*: over
    *idle* GPU milli a normal demand, whose excess over what is left is strands GPUs in proportion.
    """
    if mean <= 0:
        return np.zeros(len(idle))
    gpus = idle / 1000.0
    spread = np.maximum(deviation * np.sqrt(gpus), mean * 1e-6)
    distance = (left - mean * gpus) / spread
    places = np.clip((distance + REACH) * STEPS, 0, len(_LOSS) - 1).astype(np.int64)
    excess = np.where(distance < -REACH, -distance, _LOSS[places])
    excess[distance > REACH] = 0.0
    found: FloatArray = excess * spread * (1000.0 / mean)
    return found
