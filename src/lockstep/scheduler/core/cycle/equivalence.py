"""Which workloads fit or fail alike, so that one of them that failed answers for the others."""

from __future__ import annotations

from lockstep.scheduler.core.cycle.pending_queue import EquivalenceClass
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.state.cluster import Cluster


def equivalence_class(
    cluster: Cluster, workload: Workload, problem: Problem | None
) -> EquivalenceClass | None:
    """Return what workloads of one queue share that fit or fail alike; None for one by itself."""
    if problem is None or workload.key in cluster.nominations:
        return None
    rank, magnitude = cluster.priorities.rank(workload), _magnitude(workload.runtime)
    if problem.single:
        return problem.items[0].shape.id, rank, magnitude
    if workload.bound:  # where the others stand follows from this one
        return workload.key
    return problem.signature, rank, magnitude


def _magnitude(runtime: float | None) -> int:
    """Return of which order of magnitude a run time is."""
    return -1 if runtime is None else int(runtime).bit_length()
