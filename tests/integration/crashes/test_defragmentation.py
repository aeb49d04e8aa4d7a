"""The scheduler, ended at each call while gangs move: everybody stands, nothing is taken twice.

The controller that makes the pods again and the nodes are the real ones; nothing happens to them.
"""

from __future__ import annotations

from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.stories import submit

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import (
    CHECKPOINT_ANNOTATION,
    DEFRAGMENT_ANNOTATION,
    GPUS_ANNOTATION,
)
from lockstep.api.training import TRAINING_JOBS


async def reaches(stage: Stage, wanted: dict[str, str]) -> None:
    """Wait for gangs to be in these phases."""

    async def look() -> bool:
        gangs = (await stage.client.list(GANGS, "default")).items
        found = {gang.metadata.name: gang.status.phase for gang in gangs}
        return all(found.get(name) == phase for name, phase in wanted.items())

    await stage.until(look, f"{wanted}")


async def annotate(stage: Stage, name: str, annotation: str, value: str) -> None:
    body = {"metadata": {"annotations": {annotation: value}}}
    await stage.client.patch(GANGS, name, body, "default")


async def moving(stage: Stage) -> None:
    """A job on all four nodes, and one that wants a whole node: the first moves together."""
    stage.start()
    await submit(stage.client, "wide", 4, gpus=2, strategy="Spread")
    await reaches(stage, {"wide": "Running"})
    await annotate(stage, "wide", CHECKPOINT_ANNOTATION, "2026-01-01T00:00:00Z")
    await submit(stage.client, "whole", 1)
    await reaches(stage, {"wide": "Running", "whole": "Pending"})
    await annotate(stage, "whole", DEFRAGMENT_ANNOTATION, "9999d")
    await reaches(stage, {"wide": "Running", "whole": "Running"})


async def outcome(stage: Stage) -> object:
    """Return how far everything is; on which of the equal nodes it stands is left out."""
    pods = (await stage.client.list(PODS, "default")).items
    gangs = (await stage.client.list(GANGS, "default")).items
    jobs = (await stage.client.list(TRAINING_JOBS, "default")).items
    return {
        "pods": {
            pod.metadata.name: (
                pod.status.phase,
                len(pod.metadata.annotations.get(GPUS_ANNOTATION, "").split(",")),
            )
            for pod in pods
        },
        "gangs": {g.metadata.name: (g.status.phase, g.status.nominated) for g in gangs},
        "moves": {
            g.metadata.name: (
                g.status.defragmentation.phase,
                [(m.name, m.phase) for m in g.status.defragmentation.moves],
            )
            for g in gangs
            if g.status.defragmentation is not None
        },
        "jobs": {j.metadata.name: (j.status.phase, j.status.restarts) for j in jobs},
        "made": dict(stage.audit.made),
    }


STORY = Scenario(
    in_process(parts.scheduler),
    moving,
    outcome,
    beside=(parts.controllers, parts.nodes),
    keeps_nodes=True,
)


async def test_gangs_move_wherever_the_scheduler_ends(furnished_arena: Arena) -> None:
    await furnished_arena.endures(STORY)


async def test_gangs_move_in_any_weather(furnished_arena: Arena) -> None:
    await furnished_arena.weathers(STORY, range(furnished_arena.seeds))
