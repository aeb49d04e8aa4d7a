"""A cluster whose free GPUs are scattered, and the moves that gather them."""

from __future__ import annotations

from typing import Any

from tests.support.running import Running

from lockstep.api.timestamp import show
from lockstep.scheduler.core.defrag.defragmenter import Look
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.model.workload import WorkloadKey

SAVED = "lockstep.dev/checkpoint"
ASKED = "lockstep.dev/defragment"
THREE = "s/x: a:8 b:8 c:8"
RESTART = 120
LATER = 1_001_000.0


There = dict[str, tuple[str, int | None]]
"""By drawing of a gang: its nodes, and how many seconds ago it saved its work, None for never."""


def key(name: str) -> WorkloadKey:
    return WorkloadKey("Gang", "default", name)


def standing(drawing: str, there: There, queues: dict[str, Any] | None = None) -> Running:
    """Return a cluster in which gangs stand on just these nodes."""
    world = Running.on(drawing, queues)
    for whole, (nodes, saved) in there.items():
        text, _, rest = whole.partition(" in ")
        queue, _, priority = rest.partition(" ")
        when = {} if saved is None else {SAVED: show(LATER - saved)}
        name = world.submit(text, queue or "default", priority, annotations=when)
        world.stand(name, nodes.split())
    world.settle()
    world.now = LATER
    return world


def proposed(world: Running, name: str) -> MovePlan | str:
    """Return what the scheduler would propose for a gang that waits."""
    workload = world.cluster.workloads[key(name)]
    problem = world.decider.problem(workload)
    assert problem is not None
    return world.decider.defragmenter.propose(Look(workload, problem, world.now))


def pods_moved(drawing: str, there: There, waits: str) -> dict[str, int]:
    """Of how many pods of which gangs it is proposed that they move."""
    world = standing(drawing, there)
    plan = proposed(world, world.submit(waits))
    moves = () if isinstance(plan, str) else plan.moves
    return {m.mover.key.name: len(m.mover.members) for m in moves}


def ask(world: Running, name: str, request: str) -> None:
    """Ask on a gang that others move for it."""
    world.annotate(name, {ASKED: request})


def steps(world: Running) -> tuple[str, list[str]]:
    shown = world.cluster.defragmentations[key("w")]
    return shown.phase, [move.phase for move in shown.moves]
