"""Trying one workload: within quota, by what is known of others that ask alike, by a search."""

from __future__ import annotations

from lockstep.scheduler.core.model.decisions import Placement
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement import admission
from lockstep.scheduler.core.placement.problem import Problem, strategy_of
from lockstep.scheduler.core.placement.search import place_on
from lockstep.scheduler.core.scoring.feasibility import members_fit
from lockstep.scheduler.core.state.cluster import Cluster


class Placer:
    """Places workloads one by one, and keeps what spares the next one a search."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last_node = LastNodeCache(cluster.table)
        self._failed: set[tuple[object, ...]] = set()
        """What was asked for in vain since something was freed."""

    def thaw(self) -> None:
        """Forget what was asked for in vain: something was freed."""
        self._failed.clear()

    def place(
        self, workload: Workload, problem: Problem | None, *, exempt: bool
    ) -> Placement | None:
        """Return where a workload goes now; None where it has to wait.

        One that is *exempt* need not leave alone what is reserved for others.
        """
        cluster = self._cluster
        if problem is None or (self._failed and (problem.signature, exempt) in self._failed):
            return None
        if admission.over_quota(cluster, workload, problem) is not None:
            return None
        alike = problem.single and cluster.fits.preference(problem.strategy).steady
        row = self._last_node.row(problem.items[0].shape) if alike else None
        if row is not None and not cluster.ledger.by_model:
            return place_on(cluster.table, row, workload.key, problem.members[0][0])
        placement = admission.place(cluster, workload, problem)
        if placement is None or not placement.assignments:
            if not admission.selective(cluster, problem):
                self._failed.add((problem.signature, exempt))
            return None
        return placement

    def placed(self, placement: Placement) -> None:
        """Remember where the next pod goes that is like one of no gang that was just placed."""
        if len(placement.assignments) != 1 or placement.workload.kind != "Pod":
            return
        cluster, (last,) = self._cluster, placement.assignments
        strategy = strategy_of(cluster, cluster.workloads[placement.workload])
        table, shape = cluster.table, last.member.shape
        row = table.rows[last.spot.node]
        left = self._last_node.rest(shape, row)
        if left is None:
            left = int(members_fit(table.free[:, row : row + 1], shape)[0])
        steady = cluster.fits.preference(strategy).steady
        self._last_node.placed(shape, row, left if steady else 0)


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
