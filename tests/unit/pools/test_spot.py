"""The minimum of a job keeps off spot nodes; pools get spot nodes for what is beyond."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.drawn import node, queue
from tests.support.jobs import job, role
from tests.support.pooled import bought, pool

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.gang import Gang
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.jobs import objects
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.frameworks.base import members
from lockstep.pools.core import holding
from lockstep.pools.core.growth import grow
from lockstep.scheduler.core.state.cluster import Cluster

NOW = 1_000_000.0
FULL, SPOT = "full: 8x8 price=20", "spot: 8x8 price=5 spot"


def elastic(replicas: int = 6, least: int = 2, **spec: Any) -> TrainingJob:
    workers = role(replicas=replicas, min=least, gpus=8)
    return job(workers, framework="plain", **{"spot": "AboveMin", **spec})


def world(given: TrainingJob, placed: int) -> Cluster:
    """Return a cluster where the first pods of a job stand on nodes of their own."""
    cluster = Cluster()
    body = objects.gang(given)
    body["metadata"]["uid"] = "g"
    cluster.set_gang(convert(body, Gang))
    everyone = members(given)
    for number, member in enumerate(everyone):
        pod = objects.pod(given, FRAMEWORKS["plain"], member, everyone)
        pod["metadata"]["uid"] = f"p{number}"
        if number < placed:
            cluster.set_node(node(f"n{number}"))
            pod["spec"]["nodeName"] = f"n{number}"
            pod["metadata"]["annotations"]["lockstep.dev/gpus"] = "0,1,2,3,4,5,6,7"
        cluster.set_pod(convert(pod, Pod))
    return cluster


CASES: list[tuple[str, TrainingJob, int, list[str], dict[str, dict[str, list[int]]]]] = [
    ("the minimum is not on spot", elastic(), 0, [FULL, SPOT], {"digits": {"full": [0, 1]}}),
    ("spot pools alone start nothing", elastic(), 0, [SPOT], {}),
    (
        "the rest is on spot once it stands",
        elastic(),
        2,
        [FULL, SPOT],
        {"digits": {"spot": [0, 1, 2, 3]}},
    ),
    ("half where not all", elastic(), 2, ["s: 3x8 spot"], {"digits": {"s": [0, 1]}}),
    ("no dear nodes for the rest", elastic(), 2, [FULL], {}),
    ("without the field none for the rest", elastic(spot="Allowed"), 2, [FULL, SPOT], {}),
    ("never on spot", elastic(spot="Never"), 0, [SPOT, FULL], {"digits": {"full": [0, 1]}}),
]


@pytest.mark.parametrize(
    ("rule", "given", "placed", "pools", "expected"), CASES, ids=[case[0] for case in CASES]
)
def test_the_minimum_keeps_off_spot(
    rule: str,
    given: TrainingJob,
    placed: int,
    pools: list[str],
    expected: dict[str, dict[str, list[int]]],
) -> None:
    cluster = world(given, placed)
    assert bought(grow(cluster, [pool(text) for text in pools], NOW, judged=bool(placed))) == (
        expected
    )


def test_what_the_rest_lacks_is_said() -> None:
    found = grow(world(elastic(), 2), [pool(FULL)], NOW)
    assert list(found.refused.values()) == ["full: none of its nodes holds a pod of it"]


def test_the_rest_stays_within_the_queues_limit() -> None:
    cluster = world(elastic(), 2)
    cluster.set_queue(queue("default", limit={"nvidia.com/gpu": 32}))
    assert bought(grow(cluster, [pool(SPOT)], NOW)) == {"digits": {"spot": [0, 1]}}


def test_nodes_for_the_rest_are_held_until_they_are_there() -> None:
    cluster = world(elastic(), 2)
    (purchase,) = grow(cluster, [pool(SPOT)], NOW).purchases
    request = holding.request_for(pool(SPOT), purchase, NOW)
    asked = {"requests": [{"id": "r", "slots": request.slots, "at": request.at, "sent": True}]}
    asked["requests"][0]["holders"] = [
        {"kind": "Gang", "namespace": "team", "name": "digits", "uid": "g"}
    ]
    waiting = pool(SPOT, status=asked)
    assert holding.review(cluster, waiting, NOW).requests
    assert not grow(cluster, [waiting], NOW).purchases
    assert not holding.review(world(elastic(), 6), waiting, NOW).requests


def test_a_request_goes_on_while_its_node_is_not_seen() -> None:
    full, early = world(elastic(), 6), world(elastic(), 6)
    early.remove_node("n5")  # its pod came by another watch
    asked = {"requests": [{"id": "r", "slots": [5], "at": timestamp.show(NOW), "sent": True}]}
    asked["requests"][0]["holders"] = [
        {"kind": "Gang", "namespace": "team", "name": "digits", "uid": "g"}
    ]
    waiting = pool(SPOT, status=asked)
    assert holding.review(early, waiting, NOW).requests
    assert not holding.review(full, waiting, NOW).requests


@pytest.mark.parametrize(("name", "cancelled"), [("n5", ()), ("empty", (5,))])
def test_node_that_bears_a_pod_is_not_cancelled(name: str, cancelled: tuple[int, ...]) -> None:
    whom = {"kind": "Gang", "namespace": "team", "name": "digits", "uid": "g"}
    asked = {"id": "r", "slots": [5], "at": timestamp.show(NOW), "sent": True, "holders": [whom]}
    unready = replace(pool(SPOT, status={"requests": [asked]}), names={5: name})
    assert holding.review(world(elastic(), 6), unready, NOW).unwanted == cancelled
