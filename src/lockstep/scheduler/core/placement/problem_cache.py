"""What all workloads ask for, kept because most of what waits is looked at often before its
turn."""

from __future__ import annotations

from lockstep.scheduler.core.model.pod_groups import PodGroup
from lockstep.scheduler.core.model.topology import Tiers
from lockstep.scheduler.core.model.workload import Member, Workload, WorkloadKey
from lockstep.scheduler.core.placement.preconditions import unmet_precondition
from lockstep.scheduler.core.placement.problem import Problem, problem_of
from lockstep.scheduler.core.state.cluster import Cluster


class ProblemCache:
    """The problems of workloads, each for as long as nothing that it follows from has changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[WorkloadKey, tuple[list[PodGroup[Member]], Tiers, Problem]] = {}

    def of(self, workload: Workload) -> Problem | None:
        """Return what a workload asks for; None where it is blocked by itself."""
        known = self._known.get(workload.key)
        pod_groups, tiers = workload.pod_groups, self._cluster.table.tiers
        if known is not None and known[0] is pod_groups and known[1] is tiers:
            return known[2]
        if unmet_precondition(self._cluster, workload) is not None:
            return None
        problem = problem_of(self._cluster, workload)
        if not workload.bound:  # else it also follows from where the members' nodes stand
            self._known[workload.key] = (pod_groups, tiers, problem)
        return problem

    def forget(self, key: WorkloadKey) -> None:
        """Keep nothing of a workload that does not wait any more."""
        self._known.pop(key, None)
