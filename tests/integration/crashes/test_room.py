"""The scheduler, ended at each call while it counts what there is: quotas, shares, time and ranks.

No limit and no card is ever exceeded, what is given back can be had again, whoever waits for a
place and a time keeps both, and ranks that talk to each other stay together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import Run, in_process
from tests.support.queue_stories import end_of, let_go, placed, queued_gang, reason, share, timed
from tests.support.scheduler import add_gang, add_nodes, nodes_of, pod_body
from tests.support.stories import IMPORTANT, add_importance, add_queue, stand

from lockstep.api import timestamp
from lockstep.api.core import PODS, Pod
from lockstep.api.gang import GANGS
from lockstep.api.names import GPU

Story = Callable[[Stage], Awaitable[None]]


async def limits_bind(stage: Stage) -> None:
    """Six nodes, of which two parts of a queue may use four, and one of them three."""
    client = stage.client
    stage.audit.limits = {frozenset({"a", "b"}): 32, frozenset({"a"}): 24}
    await add_nodes(client, [f"n{i}" for i in range(6)])
    await add_queue(client, "org", limit={GPU: 32})
    await add_queue(client, "a", parent="org", limit={GPU: 24})
    await add_queue(client, "b", parent="org")
    for name, queue, members in (("a1", "a", 2), ("a2", "a", 2), ("b1", "b", 2), ("b2", "b", 1)):
        await queued_gang(client, name, queue, members)
    stage.start()
    await stand(stage, "a1-0", "a1-1", "b1-0", "b1-1")
    await reason(stage, "a2", "OverQuota")
    await reason(stage, "b2", "OverQuota")
    await placed(stage, "a1", "b1")
    # What one pod leaves is enough for one of the gangs that wait, and not for the other.
    await let_go(stage, "a1-0")
    await stand(stage, "b2-0")


async def quota_is_kept(stage: Stage) -> None:
    """Of three nodes a queue uses two; the third is kept for the first that waits for all three."""
    client = stage.client
    stage.audit.limits = {frozenset({"q"}): 24}
    await add_nodes(client, [f"n{i}" for i in range(6)])
    await add_queue(client, "q", limit={GPU: 24})
    stage.start()
    await timed(client, "runs", 2, 3600, "q")
    await stand(stage, "runs-0", "runs-1")
    await placed(stage, "runs")
    await timed(client, "first", 3, None, "q")
    await estimate(stage, "first")
    await timed(client, "long", 1, 36_000, "q")
    await reason(stage, "long", "OverQuota")
    await timed(client, "short", 1, 600, "q")
    await stand(stage, "short-0")
    await placed(stage, "short")


async def cards_are_shared(stage: Stage) -> None:
    """Shares on two cards, one of which is cleared for a pod that takes it whole."""
    client = stage.client
    await add_importance(client)
    for name, compute, memory in (("s1", 50, 40), ("s2", 50, 20), ("s4", 40, 20)):
        await client.create(PODS, share(name, compute, memory))
    await client.create(PODS, share("s3", 60, 60, priorityClassName=IMPORTANT))
    stage.start()
    await stand(stage, "s1", "s2", "s3", "s4")
    await let_go(stage, "s4")
    # There is room for its compute on one card, and for its memory on none.
    await client.create(PODS, share("waits", 10, 30))
    await client.create(PODS, pod_body("whole", gpus=1, priorityClassName=IMPORTANT))
    await stand(stage, "whole")
    await let_go(stage, "waits", "s3", "whole")
    for name in ("left", "right"):
        await client.create(PODS, pod_body(name, gpus=1))
    await stand(stage, "left", "right")


async def started(stage: Stage, gang: str) -> float:
    """Return when the last pod of a gang began to run."""
    found: list[Pod] = []

    async def look() -> bool:
        pods = (await stage.client.list(PODS, "default")).items
        found[:] = [p for p in pods if p.metadata.name.startswith(f"{gang}-")]
        return all(p.status.start_time for p in found)

    await stage.until(look, f"{gang} runs")
    return max(timestamp.parse(p.status.start_time or "") for p in found)


async def estimate(stage: Stage, gang: str) -> float:
    """Return when a gang is told that it starts."""

    async def look() -> str | None:
        return (await stage.client.get(GANGS, gang, "default")).status.estimated_start

    return timestamp.parse(await stage.until(look, f"when {gang} starts"))


async def a_place_is_kept(stage: Stage) -> None:
    """One node is free and is kept for the first that waits; only what is short passes."""
    client = stage.client
    stage.start()
    await timed(client, "runs", 3, 3600)
    await stand(stage, "runs-0", "runs-1", "runs-2")
    await started(stage, "runs")
    await timed(client, "first", 4, None)
    await estimate(stage, "first")
    await timed(client, "long", 1, 36_000)
    await timed(client, "unknown", 1, None)
    await reason(stage, "long", "NotEnoughRoom")
    await reason(stage, "unknown", "NotEnoughRoom")
    await timed(client, "short", 1, 600)
    await stand(stage, "short-0")


async def kept(stage: Stage) -> dict[str, Any]:
    """Return how it ends, with when the first starts: when what runs ends, and no later."""
    waits = await estimate(stage, "first") - await started(stage, "runs")
    return {**await end_of(stage), "first": abs(waits - 3600) <= 1.0}


async def ranks_are_laid_out(stage: Stage) -> None:
    """Four pods whose pairs talk, on two leaves of two nodes."""
    client = stage.client
    for leaf in "xy":
        await add_nodes(client, [f"{leaf}{i}" for i in range(2)], spine="s", leaf=leaf)
    stage.start()
    split = {"tensor": 8, "pipeline": 2, "data": 2}
    await add_gang(client, "llm", 4, parallelism=split)
    await stand(stage, *(f"llm-{i}" for i in range(4)))


async def laid_out(stage: Stage) -> dict[str, Any]:
    """Return how it ends, with which pods share a leaf."""
    where = await nodes_of(stage.client, "llm")
    leaves: dict[str, set[str]] = {}
    for pod, node in where.items():
        leaves.setdefault(node[0], set()).add(pod)
    return {**await end_of(stage), "together": sorted(sorted(pods) for pods in leaves.values())}


def scenario(story: Story, outcome: Callable[[Stage], Awaitable[object]], *beside: Run) -> Scenario:
    return Scenario(in_process(parts.scheduler), story, outcome, beside, keeps_nodes=bool(beside))


STORIES = {
    "limits of queues bind": scenario(limits_bind, end_of),
    "quota is kept for the first": scenario(quota_is_kept, end_of),
    "cards are shared": scenario(cards_are_shared, end_of, parts.cards),
    "a place and a time are kept": scenario(a_place_is_kept, kept, parts.nodes),
    "ranks are laid out": scenario(ranks_are_laid_out, laid_out),
}


def told(story: str) -> Scenario:
    return STORIES[story]


@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_wherever_the_scheduler_ends(arena: Arena, story: str) -> None:
    await arena.endures(told(story))


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_in_any_weather(arena: Arena, story: str) -> None:
    await arena.weathers(told(story), range(arena.seeds))
