"""What jobs that state their parallelism pay for where they stand, against the best place there is.

The best place is where the scheduler puts the same members on the same nodes while nobody else is
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from lockstep.api.core import Pod
from lockstep.scheduler.core.cluster import Cluster
from lockstep.scheduler.core.picture import communication
from lockstep.scheduler.core.placement import Search
from lockstep.scheduler.core.problem import problem_of
from lockstep.scheduler.core.units import UnitKey
from lockstep.sim.record import Compared, Life, Paid
from lockstep.sim.workload import Workload
from lockstep.sim.world import World


def paid(cluster: Cluster, key: UnitKey) -> Paid | None:
    """Return what a job's members that have nodes pay; None where it states no parallelism."""
    unit = cluster.units[key]
    if unit.parallelism is None:
        return None
    places = {member.key: member.node for member in unit.bound}
    seconds = communication(cluster, unit, places)
    return None if seconds is None else Paid(seconds, frozenset(m.name for m in unit.bound))


def compared(world: World, lives: Iterable[Life]) -> list[Compared]:
    """Return the jobs that stated their parallelism and started, each beside its best place."""
    found: list[Compared] = []
    alone: _Alone | None = None
    for life in lives:
        if life.paid is None or life.started is None:
            continue
        if alone is None:
            alone = _Alone(world)
        seconds = life.paid.seconds
        # Layouts are searched for; what was found among others may be the better one.
        ideal = min(seconds, alone.seconds(life.work, life.paid.pods))
        found.append(Compared(life.work.name, life.started, seconds, ideal))
    return found


class _Alone:
    """The cluster with nobody on it, for one job after the other."""

    def __init__(self, world: World) -> None:
        self._cluster = replace(world, pods={}, queues=[]).cluster()
        self._known: dict[bytes, float] = {}

    def seconds(self, work: Workload, pods: frozenset[str]) -> float:
        """Return what these members of a job pay at best; infinity where they have no room."""
        chosen = [pod for pod in work.pods if pod.metadata.name in pods]
        alike = msgspec.json.encode((work.gang.spec, [pod.spec for pod in chosen]))
        if alike not in self._known:
            self._known[alike] = self._tried(work, chosen)
        return self._known[alike]

    def _tried(self, work: Workload, pods: Sequence[Pod]) -> float:
        cluster = self._cluster
        cluster.set_gang(work.gang)
        for pod in pods:
            cluster.set_pod(pod)
        unit = cluster.units[work.key]
        placement = Search(cluster, problem_of(cluster, unit)).place(work.key)
        seconds = None
        if placement is not None:
            places = {one.member.key: one.spot.node for one in placement.assignments}
            seconds = communication(cluster, unit, places)
        for pod in pods:
            cluster.remove_pod(pod.metadata.namespace, pod.metadata.name)
        cluster.remove_gang(work.key.namespace, work.key.name)
        return np.inf if seconds is None else seconds
