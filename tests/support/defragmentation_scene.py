"""A drawn scene of defragmentation, played over changes of leader."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace
from tests.support.drawn import draw
from tests.support.running import PRIORITIES, Running

from lockstep.api.core import PriorityClass
from lockstep.api.gang import GangStatus
from lockstep.api.meta import ObjectMeta
from lockstep.api.timestamp import show
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.defrag.defragmenter import Look
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.gang_status import gang_status
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import format_indices

SAVED = "lockstep.dev/checkpoint"
LATER = 1_001_000.0
WAITING = WorkloadKey("Gang", "default", "w")


@dataclass
class Scene:
    """Nodes with gangs on them, and one that comes."""

    drawing: str
    there: list[tuple[str, int, int, int | None, list[int], int]]
    """Name, pods, GPUs of each, seconds since its work was saved, where its pods would stand, and
    how many of them it can do without."""
    waits: tuple[int, int]
    world: Running = field(init=False)

    def __post_init__(self) -> None:
        world = self.world = Running.on(self.drawing)
        world.graceful = True
        names = sorted(world.cluster.table.rows)
        for name, pods, gpus, saved, where, spare in self.there:
            nodes = [names[number % len(names)] for number in where[:pods]]
            free = {node: self.free(node) for node in nodes}
            if any(free[node] < gpus * nodes.count(node) for node in nodes):
                continue
            when = {} if saved is None else {SAVED: show(LATER - saved)}
            least = pods if saved is None else max(1, pods - spare)
            size = f"{pods}x{gpus}" if least == pods else f"{least}..{pods}x{gpus}"
            world.stand(world.submit(f"{name}: {size}", annotations=when), nodes)
        world.settle()
        world.submit(f"w: {self.waits[0]}x{self.waits[1]}")
        world.now = LATER

    def free(self, node: str) -> int:
        table = self.world.cluster.table
        return table.free_devices(table.rows[node]).bit_count()

    def plan(self) -> MovePlan | str:
        world = self.world
        workload = world.cluster.workloads[WAITING]
        world.decider.waiting()
        problem = world.decider.problem(workload)
        assert problem is not None
        return world.decider.defragmenter.propose(Look(workload, problem, world.now))


def new_leader(world: Running, drawing: str, first: dict[str, GangStatus]) -> None:
    """Let a leader begin that knows what the server shows; *first* may be older than what is."""
    old = world.cluster
    cluster = draw(Cluster(), drawing)
    for name, value in PRIORITIES.items():
        cluster.set_priority_class(PriorityClass(metadata=ObjectMeta(name=name), value=value))
    for name, drawn in world.gangs.items():
        status = first.get(name) or GangStatus()
        drawn.gang = replace(drawn.gang, status=status)
        cluster.set_gang(drawn.gang)
    for (_, name), member in old.pods.items():
        pod = world._pod(name)
        meta = replace(
            pod.metadata,
            deletion_timestamp=show(world.now) if member.terminating else None,
            annotations={"lockstep.dev/gpus": format_indices(member.gpus)} if member.gpus else {},
        )
        status = replace(pod.status, phase="Running" if member.node else "Pending")
        spec = replace(pod.spec, node_name=member.node)
        cluster.set_pod(replace(pod, metadata=meta, spec=spec, status=status))
        cluster.pods["default", name].since = member.since
    world.cluster, world.decider = cluster, Decider(cluster)


def statuses(world: Running) -> dict[str, GangStatus]:
    """Return what is written of each gang where the status writer keeps up."""
    found = {}
    for name in world.gangs:
        workload = world.cluster.workloads[WorkloadKey("Gang", "default", name)]
        status = gang_status(world.cluster, workload, None, None, show(world.now))
        nominated = world.cluster.nominations.get(workload.key)
        kept = {"nominated": nominated.nodes if nominated is not None else {}}
        kept["defragmentation"] = status["defragmentation"]
        found[name] = convert(kept, GangStatus)
    return found
