"""What queues show: who waits and runs there, what they hold, whether they are placed right."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import draw, gang, pod, queue
from tests.support.queued import WIDE, cluster_with, placed, submit

from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.api.names import GPU
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.quota_messages import queue_status
from lockstep.scheduler.core.state.cluster import Cluster

TEAM = {"labels": {"lockstep.dev/queue": "team"}}


def member(i: int, **more: Any) -> Pod:
    return pod(f"g-{i}", gpus=2, cpu="1500m", gang="g", **more)


@pytest.mark.parametrize(
    ("gangs", "pods", "expected"),
    [
        ([], [], {"team": (0, 0, {}), "default": (0, 0, {})}),
        ([gang("g", minMember=1)], [member(0)], {"default": (1, 0, {}), "team": (0, 0, {})}),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0), member(1)],
            {"team": (1, 0, {})},
        ),
        (
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2")],
            {"team": (0, 1, {"cpu": 3, GPU: 4})},
        ),
        (  # one that ended holds nothing
            [gang("g", minMember=2, queue="team")],
            [member(0, on="a1"), member(1, on="a2", phase="Succeeded")],
            {"team": (0, 1, {"cpu": "1500m", GPU: 2})},
        ),
        (  # pods on their own are in the queue that they name, or in the default one
            [],
            [pod("a", gpus=1, on="a1"), pod("b", gpus=1), pod("c", gpus=1, **TEAM)],
            {"default": (1, 1, {GPU: 1}), "team": (1, 0, {})},
        ),
        (  # what a part holds its whole holds
            [gang("g", minMember=2, queue="part")],
            [member(0, on="a1"), member(1, on="a2")],
            {"team": (0, 1, {"cpu": 3, GPU: 4}), "part": (0, 1, {"cpu": 3, GPU: 4})},
        ),
    ],
)
def test_status(
    gangs: list[Gang], pods: list[Pod], expected: dict[str, tuple[int, int, dict[str, Any]]]
) -> None:
    cluster = draw(Cluster(), "s/a: a1:8 a2:8")
    for one in [queue("team"), queue("default"), queue("part", parent="team")]:
        cluster.set_queue(one)
    for one in pods:  # in any order: the gang that names the queue may come last
        cluster.set_pod(one)
    for one in gangs:
        cluster.set_gang(one)
    decider = Decider(cluster)
    decider.waiting()
    for name, wanted in expected.items():
        status = queue_status(cluster, name, decider.pending_queue.pending)
        assert (status["pending"], status["running"], status["used"]) == wanted


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ({"q": {"parent": "nobody"}}, "its parent nobody does not exist; it is taken as a top"),
        ({"q": {"parent": "q"}}, "it is part of itself by way of q; it is taken as a top queue"),
        ({"q": {"parent": "r"}, "r": {"parent": "q"}}, "it is part of itself by way of r"),
        ({"q": {"parent": "r"}, "r": {}}, ""),
    ],
)
def test_a_misplaced_queue_says_so(queues: dict[str, dict[str, Any]], message: str):
    cluster = cluster_with(WIDE, queues)
    submit(cluster, "a: 1x8", "q")
    Decider(cluster).decide(0.0)
    assert placed(cluster) == {"a"}
    (condition,) = queue_status(cluster, "q", {})["conditions"]
    assert condition["status"] == ("False" if message else "True")
    assert condition["message"].startswith(message)


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("gpu", "its limit names gpu, which no pod can ask for: did you mean nvidia.com/gpu?"),
        ("GPUs", "did you mean nvidia.com/gpu?"),
        ("nvidia.com/gpus", "did you mean nvidia.com/gpu?"),
        ("gpuu", "did you mean nvidia.com/gpu?"),
        ("memroy", "did you mean memory?"),
        ("cards", "it has no domain before a slash, as nvidia.com/gpu has"),
        ("amd.com/gpu", ""),
        ("nvidia.com/gpu/A 100", "no node can have the label nvidia.com/gpu.product with 'A 100'"),
        ("nvidia.com/gpu/", "no node can have the label nvidia.com/gpu.product with ''"),
        ("nvidia.com/gpu/A-100", ""),
        ("ephemeral-storage", ""),
        ("hugepages-2Mi", ""),
    ],
)
def test_a_queue_tells_of_a_limit_that_limits_nothing(resource: str, said: str):
    cluster = cluster_with(WIDE, {"q": {"limit": {resource: 4}}})
    Decider(cluster).decide(0.0)
    (condition,) = queue_status(cluster, "q", {})["conditions"]
    assert said in condition["message"]
    assert bool(said) == bool(condition["message"])
    assert condition["status"] == ("False" if said else "True")


@pytest.mark.parametrize(
    ("guaranteed", "limit", "said"),
    [
        (16, 8, "guarantees 16 nvidia.com/gpu, but its limit lets it use 8; raise the limit"),
        ("8500m", 8, "guarantees 8500m nvidia.com/gpu, but its limit lets it use 8"),
        (8, 8, ""),
    ],
)
def test_a_queue_tells_of_a_guarantee_beyond_its_limit(
    guaranteed: int | str, limit: int, said: str
):
    gpus = {"guaranteed": {GPU: guaranteed}, "limit": {GPU: limit}}
    cluster = cluster_with(WIDE, {"q": gpus})
    Decider(cluster).decide(0.0)
    (condition,) = queue_status(cluster, "q", {})["conditions"]
    assert condition["message"].startswith(said)
    assert bool(said) == bool(condition["message"])
    assert condition["status"] == ("False" if said else "True")


@pytest.mark.parametrize(
    ("parent", "said"),
    [
        ({"guaranteed": {GPU: 8}}, "but its parent org is guaranteed 8; guarantee no more"),
        ({"limit": {GPU: 8}}, "but its parent org may use 8; guarantee no more"),
        ({"guaranteed": {GPU: 16}, "limit": {GPU: 16}}, ""),
        ({"guaranteed": {"cpu": 8}}, ""),
    ],
)
def test_a_queue_tells_of_a_guarantee_beyond_its_parents(parent: dict[str, Any], said: str):
    part = {"parent": "org", "guaranteed": {GPU: 16}}
    cluster = cluster_with(WIDE, {"org": parent, "q": part})
    Decider(cluster).decide(0.0)
    (condition,) = queue_status(cluster, "q", {})["conditions"]
    assert said in condition["message"]
    assert (condition["status"], condition["reason"]) == (
        ("False", "Misstated") if said else ("True", "Ready")
    )
