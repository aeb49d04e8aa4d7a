"""The scheduler, ended at each call while gangs move: everybody stands, nothing is taken twice.

The controller that makes the pods again and the nodes are the real ones; nothing happens to them.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.stories import are, submit

from lockstep.api.core import PODS
from lockstep.api.gang import GANGS
from lockstep.api.names import (
    CHECKPOINT_ANNOTATION,
    DEFRAGMENT_ANNOTATION,
    GPUS_ANNOTATION,
    JOB_LABEL,
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


async def moved(stage: Stage, *, stays: int, **jobs: int) -> None:
    """Wait for the end of the moves: jobs run on that many pods, and it is on record who stayed."""

    async def look() -> bool:
        pods = (await stage.client.list(PODS, "default")).items
        there = Counter(p.metadata.labels[JOB_LABEL] for p in pods if p.status.phase == "Running")
        gang = await stage.client.get(GANGS, "whole", "default")
        record = gang.status.defragmentation
        if there != Counter(jobs) or record is None or record.phase != "Done":
            return False
        assert [move.stays for move in record.moves] == [stays]
        return True

    await stage.until(look, f"moves are over, and {jobs} run")
    await are(stage, **dict.fromkeys(jobs, "Running"))
    await reaches(stage, dict.fromkeys(jobs, "Running"))


async def a_gang_moves(stage: Stage) -> None:
    """A job on all four nodes, and one that wants a whole node: the first moves together."""
    stage.start()
    await submit(stage.client, "wide", 4, gpus=2, strategy="Spread")
    await reaches(stage, {"wide": "Running"})
    await annotate(stage, "wide", CHECKPOINT_ANNOTATION, "2026-01-01T00:00:00Z")
    await submit(stage.client, "whole", 1)
    await reaches(stage, {"wide": "Running", "whole": "Pending"})
    await annotate(stage, "whole", DEFRAGMENT_ANNOTATION, "9999d")
    await moved(stage, stays=0, wide=4, whole=1)


async def a_member_moves(stage: Stage) -> None:
    """The job on all four nodes can do without one member: this one moves, the others go on."""
    stage.start()
    await submit(stage.client, "wide", 4, least=3, gpus=2, strategy="Spread")
    await reaches(stage, {"wide": "Running"})
    await submit(stage.client, "whole", 1)
    await reaches(stage, {"wide": "Running", "whole": "Pending"})
    await annotate(stage, "whole", DEFRAGMENT_ANNOTATION, "9999d")
    await moved(stage, stays=3, wide=4, whole=1)


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


STORIES = {"a gang moves": a_gang_moves, "a member moves": a_member_moves}


def told(story: str) -> Scenario:
    """Return a story with the nodes and the controllers that it needs."""
    beside = (parts.controllers, parts.nodes)
    return Scenario(in_process(parts.scheduler), STORIES[story], outcome, beside, keeps_nodes=True)


@pytest.mark.parametrize("story", STORIES)
async def test_who_moves_stands_wherever_the_scheduler_ends(
    furnished_arena: Arena, story: str
) -> None:
    await furnished_arena.endures(told(story))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_who_moves_stands_in_any_weather(furnished_arena: Arena, story: str) -> None:
    await furnished_arena.weathers(told(story), range(furnished_arena.seeds))
