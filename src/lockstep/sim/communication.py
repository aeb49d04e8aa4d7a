"""What jobs that state their parallelism pay for where they stand, against the best place there is.

The best place is where the scheduler puts the same members on the same nodes while nobody else is
there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.picture import communication
from lockstep.scheduler.core.placement import Search
from lockstep.scheduler.core.problem import problem_of
from lockstep.sim.lives import Paid
from lockstep.sim.record import Compared, Result
from lockstep.sim.shapes import Shape, Shapes
from lockstep.sim.workload import Workload
from lockstep.sim.world import World


def paid(cluster: Cluster, work: Workload, shapes: Shapes) -> Paid | None:
    """Return what a job's members that have nodes pay; None where it states no parallelism."""
    unit = cluster.units[work.key]
    if unit.parallelism is None:
        return None
    places = {member.key: member.node for member in unit.bound}
    seconds = communication(cluster, unit, places)
    if seconds is None:
        return None
    return Paid(seconds, shapes.number(work, frozenset(member.name for member in unit.bound)))


def compared(world: World, result: Result) -> list[Compared]:
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
    """The cluster with nobody on it, for one job after the other."""

    def __init__(self, world: World) -> None:
        self._cluster = replace(world, pods={}, queues=[]).cluster()

    def seconds(self, shape: Shape) -> float:
        """Return what some members of a job pay at best; infinity where they have no room."""
        cluster, work = self._cluster, shape.work
        cluster.set_gang(work.gang)
        for pod in shape.pods:
            cluster.set_pod(pod)
        unit = cluster.units[work.key]
        placement = Search(cluster, problem_of(cluster, unit)).place(work.key)
        seconds = None
        if placement is not None:
            places = {one.member.key: one.spot.node for one in placement.assignments}
            seconds = communication(cluster, unit, places)
        for pod in shape.pods:
            cluster.remove_pod(pod.metadata.namespace, pod.metadata.name)
        cluster.remove_gang(work.key.namespace, work.key.name)
        return np.inf if seconds is None else seconds
