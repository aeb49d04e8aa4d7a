"""The scheduler, ended at each call while some have to leave for others.

Whoever leaves leaves whole and comes back to wait; what is freed goes to whom it was freed for, and
to nobody else; nobody leaves twice, or in vain, or from what is guaranteed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.scheduler import add_gang, pod_body
from tests.support.stories import (
    IMPORTANT,
    add_importance,
    add_queue,
    are,
    edit,
    end_of,
    stand,
    submit,
)

from lockstep.api.core import PODS
from lockstep.api.names import GPU


async def the_less_important_leave(stage: Stage) -> None:
    """A leaf is freed for a gang that needs one; a small job waits for any node meanwhile."""
    client = stage.client
    await add_importance(client)
    stage.start()
    await submit(client, "keep", 2, important=True, topology={"required": "leaf"})
    await are(stage, keep="Running")
    await submit(client, "low", 2)
    await are(stage, low="Running")
    await submit(client, "vip", 2, important=True, topology={"required": "leaf"})
    await submit(client, "thief", 1)
    await are(stage, vip="Running", low="Restarting", thief="Pending", keep="Running")


async def what_was_borrowed_goes_back(stage: Stage) -> None:
    """A queue has its guaranteed nodes back from who borrowed them, not from who is entitled."""
    client = stage.client
    await add_queue(client, "mine", guaranteed={GPU: 16})
    await add_queue(client, "theirs", guaranteed={GPU: 16})
    stage.start()
    await submit(client, "entitled", 2, queue="theirs")
    await are(stage, entitled="Running")
    await submit(client, "lent", 2, queue="theirs")
    await are(stage, lent="Running")
    await submit(client, "owner", 2, queue="mine")
    await submit(client, "thief", 1, queue="theirs")
    await are(stage, owner="Running", lent="Restarting", thief="Pending", entitled="Running")


async def a_gang_leaves_for_a_part_of_its_place(stage: Stage) -> None:
    """A pod needs one of the two nodes of a gang that nobody makes anew; all of it leaves."""
    client = stage.client
    await add_importance(client)
    stage.start()
    await add_gang(client, "keep", 2, priorityClassName=IMPORTANT)
    await stand(stage, "keep-0", "keep-1")
    await add_gang(client, "low", 4, gpus=4)
    await stand(stage, *(f"low-{i}" for i in range(4)))
    await client.create(PODS, pod_body("vip", priorityClassName=IMPORTANT))
    await client.create(PODS, pod_body("next"))
    await stand(stage, "vip", "next")


async def an_elastic_gang_shrinks(stage: Stage) -> None:
    """Of four members an elastic gang gives up the two that it can do without."""
    client = stage.client
    await add_importance(client)
    stage.start()
    await submit(client, "elastic", 4, least=2)
    await stand(stage, *(f"elastic-worker-{i}" for i in range(4)))
    await are(stage, elastic="Running")
    await submit(client, "vip", 2, important=True)
    await are(stage, vip="Running", elastic="Running")


async def a_job_makes_way_and_comes_back(stage: Stage) -> None:
    """A suspended job's nodes go to the next; resumed, it waits until they are free again."""
    client = stage.client
    stage.start()
    await submit(client, "first", 4)
    await are(stage, first="Running")
    await submit(client, "second", 3)
    await are(stage, second="Pending")
    await edit(client, "first", suspend=True)
    await are(stage, first="Suspended", second="Running")
    await edit(client, "first", suspend=False)
    await are(stage, first="Pending", second="Running")
    await edit(client, "second", suspend=True)
    await are(stage, first="Running", second="Suspended")


STORIES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "the less important leave for the more important": the_less_important_leave,
    "what was borrowed goes back": what_was_borrowed_goes_back,
    "a gang leaves for a part of its place": a_gang_leaves_for_a_part_of_its_place,
    "an elastic gang shrinks": an_elastic_gang_shrinks,
    "a suspended job makes way and comes back": a_job_makes_way_and_comes_back,
}


def told(story: str) -> Scenario:
    """Return a story with the nodes and the controllers that it needs."""
    beside = (parts.nodes, parts.controllers)
    return Scenario(in_process(parts.scheduler), STORIES[story], end_of, beside, keeps_nodes=True)


@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_wherever_the_scheduler_ends(
    furnished_arena: Arena, story: str
) -> None:
    await furnished_arena.endures(told(story))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_in_any_weather(furnished_arena: Arena, story: str) -> None:
    await furnished_arena.weathers(told(story), range(furnished_arena.seeds))
