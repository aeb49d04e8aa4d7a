"""The scheduler, ended at each call while somebody counts on what an earlier leader has said.

Who gave up has given up, members that went come back where there is room, half a gang gives back
what it has, and a promise stays.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import parts
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.lives import in_process
from tests.support.queue_stories import end_of, let_go, placed, reason, share, timed
from tests.support.scheduler import add_gang, add_nodes, pod_body
from tests.support.stories import IMPORTANT, add_importance, stand

from lockstep.api import timestamp
from lockstep.api.core import PODS
from lockstep.api.gang import GANGS, GangReservation
from lockstep.api.names import GANG_GROUP_LABEL, GANG_LABEL
from lockstep.kube.client import Client


async def a_gang_gives_up(stage: Stage) -> None:
    """Two nodes are taken; a gang waits for a second and fails, and they go to the next one."""
    client = stage.client
    await add_nodes(client, ["a", "b"])
    stage.start()
    await add_gang(client, "runs", 2)
    await placed(stage, "runs")
    await add_gang(client, "brief", 2, maxWait="1s")

    async def all_failed() -> bool:
        pods = (await client.list(PODS, "default")).items
        return all(p.status.phase == "Failed" for p in pods if p.metadata.name[:5] == "brief")

    await stage.until(all_failed, "the pods have failed")
    await reason(stage, "brief", "MaxWaitExceeded")
    await force_away(stage, "runs-0", "runs-1")
    await add_gang(client, "next", 2)
    await stand(stage, "next-0", "next-1")
    await placed(stage, "next")


async def force_away(stage: Stage, *names: str) -> None:
    """Let pods without a kubelet be gone, and with them their gang."""
    await let_go(stage, *names)
    gang = names[0].rpartition("-")[0]
    await stage.client.delete(GANGS, gang, "default")


async def member(client: Client, number: int) -> None:
    """Create a pod of the elastic gang: half a card, of which a card holds two."""
    body = share(f"e-{number}", 50, 40)
    body["metadata"]["labels"] = {GANG_LABEL: "e", GANG_GROUP_LABEL: "all"}
    await client.create(PODS, body)


async def shares_come_and_go(stage: Stage) -> None:
    """Three shares on two cards give one card up for a pod that takes it whole, and grow again."""
    client = stage.client
    await add_importance(client)
    group = {"name": "all", "min": 1, "desired": 3}
    meta = {"name": "e", "namespace": "default"}
    await client.create(GANGS, {"metadata": meta, "spec": {"groups": [group]}})
    for number in range(3):
        await member(client, number)
    stage.start()
    await stand(stage, "e-0", "e-1", "e-2")
    whole = pod_body("whole", gpus=1, priorityClassName=IMPORTANT, terminationGracePeriodSeconds=0)
    await client.create(PODS, whole)
    await stand(stage, "whole")
    await member(client, 3)
    await let_go(stage, "whole")
    await stand(stage, "e-3")


async def shrunk_and_grown(stage: Stage) -> dict[str, Any]:
    """Return how it ends; which of the equal members went is left out."""
    end = await end_of(stage)
    mine = sorted(there for name, there in end.pop("pods").items() if name.startswith("e-"))
    counts = {what: sum(end.pop(what).values()) for what in ("given", "ended")}
    return {**end, **counts, "mine": mine}


async def half_a_gang_gives_its_node_back(stage: Stage) -> None:
    """One of two members has a node, and for the other there is none."""
    client = stage.client
    await add_nodes(client, ["a", "b"])
    meta = {"name": "half", "namespace": "default"}
    await client.create(GANGS, {"metadata": meta, "spec": {"minMember": 2}})
    bound = {"nodeName": "a", "terminationGracePeriodSeconds": 0}
    await client.create(PODS, pod_body("half-0", gang="half", **bound))
    await client.create(PODS, pod_body("half-1", gang="half"))
    await client.create(PODS, pod_body("other", nodeName="b"))
    stage.start()

    async def gone() -> bool:
        pods = (await client.list(PODS, "default")).items
        return "half-0" not in {p.metadata.name for p in pods}

    await stage.until(gone, "half of it is gone")
    await client.create(PODS, pod_body("next"))
    await stand(stage, "next")


async def a_promise_is_made(stage: Stage) -> None:
    """Three of four nodes are taken by pods that never say since when they run."""
    client = stage.client
    await add_nodes(client, NODES)
    stage.start()
    await timed(client, "runs", 3, 3600)
    await stand(stage, "runs-0", "runs-1", "runs-2")
    await placed(stage, "runs")
    await timed(client, "first", 4, None)

    async def promised() -> GangReservation | None:
        return (await client.get(GANGS, "first", "default")).status.reservation

    stage.seen["promise"] = await stage.until(promised, "the first is promised a time")
    await timed(client, "long", 1, 36_000)
    await reason(stage, "long", "NotEnoughRoom")
    await timed(client, "short", 1, 600)
    await stand(stage, "short-0")
    await placed(stage, "short")


async def promise_kept(stage: Stage) -> dict[str, Any]:
    """Return how it ends, with the promise: when what runs ends, on all nodes, and never moved."""
    record = (await stage.client.get(GANGS, "first", "default")).status.reservation
    pods = (await stage.client.list(PODS, "default")).items
    since = [
        timestamp.parse(condition.last_transition_time)
        for pod in pods
        for condition in pod.status.conditions
        if pod.metadata.name.startswith("runs-") and condition.type == "PodScheduled"
    ]
    if record is None:
        return {}
    late = timestamp.parse(record.time) - max(since) - 3600
    return {
        **await end_of(stage),
        "place": sorted(record.place.values()),
        "in time": abs(late) <= ROUNDED,
        "as it was": record == stage.seen["promise"],
    }


async def a_place_is_taken_over(stage: Stage) -> None:
    """While a gang leaves for a more important one, one comes that is more important still."""
    client = stage.client
    await add_importance(client)
    await add_importance(client, MOST, 200)
    await add_nodes(client, ["a", "b"])
    stage.start()
    await add_gang(client, "least", 2)
    await stand(stage, "least-0", "least-1")
    await placed(stage, "least")
    await add_gang(client, "middle", 2, priorityClassName=IMPORTANT)
    await nominated(stage, "middle")
    await leaving(stage, "least-0", "least-1")
    await add_gang(client, "most", 2, priorityClassName=MOST)
    await nominated(stage, "most")
    await let_go(stage, "least-0", "least-1")
    await stand(stage, "most-0", "most-1")
    await placed(stage, "most")
    await reason(stage, "middle", "NotEnoughRoom")


async def nominated(stage: Stage, gang: str) -> None:
    """Wait until a gang shows the place that is being freed for it."""

    async def look() -> bool:
        return bool((await stage.client.get(GANGS, gang, "default")).status.nominated)

    await stage.until(look, f"{gang} is nominated")


async def leaving(stage: Stage, *names: str) -> None:
    """Wait until pods have been told to go and take their time."""

    async def look() -> bool:
        pods = (await stage.client.list(PODS, "default")).items
        return {p.metadata.name for p in pods if p.metadata.deletion_timestamp} >= set(names)

    await stage.until(look, f"{names} are leaving")


async def nothing_kept(stage: Stage) -> dict[str, Any]:
    """Return how it ends, and who still shows a place that is kept."""
    gangs = (await stage.client.list(GANGS)).items
    shown = sorted(g.metadata.name for g in gangs if g.status.nominated)
    return {**await end_of(stage), "nominated": shown}


NODES = ["a", "b", "c", "d"]
MOST = "crash-most-important"
ROUNDED = 3.0
"""Seconds: times are shown in whole ones, and a node is given a moment after it was chosen."""

STORIES = {
    "a gang gives up": Scenario(in_process(parts.scheduler), a_gang_gives_up, end_of),
    "shares come and go": Scenario(
        in_process(parts.scheduler),
        shares_come_and_go,
        shrunk_and_grown,
        (parts.cards,),
        keeps_nodes=True,
    ),
    "half a gang gives its node back": Scenario(
        in_process(parts.scheduler), half_a_gang_gives_its_node_back, end_of
    ),
    "a promise is made": Scenario(in_process(parts.scheduler), a_promise_is_made, promise_kept),
    "a place is taken over": Scenario(
        in_process(parts.scheduler), a_place_is_taken_over, nothing_kept
    ),
}


@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_wherever_the_scheduler_ends(arena: Arena, story: str) -> None:
    await arena.endures(STORIES[story])


@pytest.mark.real_sample()
@pytest.mark.parametrize("story", STORIES)
async def test_it_ends_the_same_in_any_weather(arena: Arena, story: str) -> None:
    await arena.weathers(STORIES[story], range(arena.seeds))
