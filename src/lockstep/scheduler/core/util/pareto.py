"""Vectors of which none is worse than another in everything."""

from __future__ import annotations

import numpy as np

from lockstep.scheduler.core.util.array_types import IntArray

FRONT_LIMIT = 512
"""Vectors kept side by side; a search that needs more gives up."""


def undominated(vectors: IntArray) -> IntArray:
    """Return the indices of the vectors that no other one matches or exceeds everywhere.

    Of more than ``FRONT_LIMIT`` of them some are left out.
    """
    if vectors.shape[1] == 2:  # the commonest case: a running maximum tells
        order = np.lexsort((-vectors[:, 1], -vectors[:, 0]))
        second = vectors[order, 1]
        before = np.maximum.accumulate(np.concatenate([[-1], second[:-1]]))
        found: IntArray = order[second > before]
        return found
    unique, index = np.unique(vectors, axis=0, return_index=True)
    order = np.argsort(-unique.sum(axis=1), kind="stable")
    kept: list[int] = []
    front = np.zeros((0, vectors.shape[1]), dtype=vectors.dtype)
    for place in order:
        vector = unique[place]
        if not (front >= vector).all(axis=1).any():
            kept.append(int(index[place]))
            front = np.vstack([front, vector])
            if len(kept) > FRONT_LIMIT:
                break
    return np.array(kept, dtype=np.int64)
