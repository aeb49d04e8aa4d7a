"""Single pods alike, one after the other: the node that took the last takes the next."""

from __future__ import annotations

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape


class LastNodeCache:
    """The node that single pods of one shape are going to, for as long as nothing else happens.

    A node is liked the more the fuller it is, so the one that was liked best stays so until it is
    full; looking through all nodes for each pod would find the same.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._shape: PodShape | None = None
        self._row = self._left = 0
        self._goes_on = False
        """Whether it told of its node when it was asked last."""
        self._moment = (-1, -1)

    def _now(self) -> tuple[int, int]:
        return self._table.version, self._table.journal.mark

    def row(self, shape: PodShape) -> int | None:
        """Return the node that takes the next pod of a shape; None where that is not known."""
        known = shape is self._shape and self._left > 0 and self._moment == self._now()
        self._goes_on = known
        return self._row if known else None

    def rest(self, shape: PodShape, row: int) -> int | None:
        """Return how many more the node has room for, once it took the pod that was asked about.

        None where that does not follow from what was known.
        """
        follows = self._goes_on and shape is self._shape and row == self._row
        return self._left - 1 if follows else None

    def placed(self, shape: PodShape, row: int, left: int) -> None:
        """Note that a pod was counted on a node which has room for so many more."""
        # What the next one likes best changes with each share or each set of devices taken.
        if shape.share is not None or shape.goes_by_connections:
            left = 0
        self._shape, self._row, self._left, self._moment = shape, row, left, self._now()
