"""What jobs that state their parallelism pay for where they stand, against the best place there is.

The best place is where the scheduler puts the same members on the same nodes while no other job is
there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.explain.rank_layout import communication
from lockstep.scheduler.core.placement.problem import problem_of
from lockstep.scheduler.core.placement.search import Search
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.sim.input.initial_cluster import InitialCluster
from lockstep.sim.input.jobs import Job
from lockstep.sim.result.job_records import Paid
from lockstep.sim.result.record import Compared, Result
from lockstep.sim.result.shapes import Shape, StandingShapes


def paid(cluster: Cluster, work: Job, shapes: StandingShapes) -> Paid | None:
    """Return what a job's members that have nodes pay; None where it states no parallelism."""
    workload = cluster.workloads[work.key]
    if workload.parallelism is None:
        return None
    places = {member.key: member.node for member in workload.bound}
    seconds = communication(cluster, workload, places)
    if seconds is None:
        return None
    return Paid(seconds, shapes.number(work, frozenset(member.name for member in workload.bound)))


def compared(world: InitialCluster, result: Result) -> list[Compared]:
    """Return the jobs that stated their parallelism and started, each beside its best place."""
    lives = result.lives
    shapes = lives.column("shape")
    jobs = np.flatnonzero(shapes >= 0)
    if not len(jobs):
        return []
    alone = _Alone(world)
    best = {
        shape: alone.seconds(result.shapes[shape]) for shape in np.unique(shapes[jobs]).tolist()
    }
    columns = (jobs, lives.column("started")[jobs], lives.column("paid")[jobs], shapes[jobs])
    return [
        # Layouts are searched for; what was found among others may be the better one.
        Compared(lives.names[job], started, seconds, min(seconds, best[shape]))
        for job, started, seconds, shape in zip(*(c.tolist() for c in columns), strict=True)
    ]


class _Alone:
    """The empty cluster, for one job after the other."""

    def __init__(self, world: InitialCluster) -> None:
        self._cluster = replace(world, pods={}, queues=[]).cluster()

    def seconds(self, shape: Shape) -> float:
        """Return what some members of a job pay at best; infinity where they have no room."""
        cluster, work = self._cluster, shape.work
        cluster.set_gang(work.gang)
        for pod in shape.pods:
            cluster.set_pod(pod)
        workload = cluster.workloads[work.key]
        placement = Search(cluster, problem_of(cluster, workload)).place(work.key)
        seconds = None
        if placement is not None:
            places = {one.member.key: one.spot.node for one in placement.assignments}
            seconds = communication(cluster, workload, places)
        for pod in shape.pods:
            cluster.remove_pod(pod.metadata.namespace, pod.metadata.name)
        cluster.remove_gang(work.key.namespace, work.key.name)
        return np.inf if seconds is None else seconds
