"""``defrag`` on a running control plane: shown, refused, carried out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

from lockstep.api.queue import QUEUES
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig

SIMULATED = ("--simulated",)


def submit(plane: ControlPlane, name: str, gpus: int, workers: int, *more: str) -> None:
    size = ("--gpus", str(gpus), "--workers", str(workers))
    plane.ok("submit", "plain", "--name", name, *size, *SIMULATED, *more, "--", "x")
    eventually_sync(lambda: name in plane.gangs(), what=f"{name} has its gang")


def running(plane: ControlPlane, count: int) -> bool:
    return [gang.get("phase") for gang in plane.gangs().values()].count("Running") == count


def scatter(plane: ControlPlane, *more: str) -> None:
    """Let two elastic jobs stand on half of two nodes, and one want three of the four whole."""
    for number, name in enumerate(("here", "gone", "there")):  # 4 GPUs each, two to a node
        submit(plane, name, 2, 2, "--min", "1")
        eventually_sync(lambda number=number: running(plane, number + 1), 90.0)
    plane.ok("delete", "gone")
    submit(plane, "large", 8, 3, *more)


def clear(plane: ControlPlane, *jobs: str) -> None:
    plane.ok("delete", *jobs)
    eventually_sync(lambda: not plane.gangs().keys() & set(jobs), 90.0, "they are gone")


def make_queue(plane: ControlPlane, name: str, **spec: Any) -> None:
    """Create a queue, as its owner does."""

    async def create() -> None:
        async with Client(ClusterConfig.load(plane.kubeconfig)) as client:
            await client.create(QUEUES, {"metadata": {"name": name}, "spec": spec})

    asyncio.run(create())


@pytest.fixture
def scattered(plane: ControlPlane):
    scatter(plane)
    eventually_sync(lambda: "room for 2 of 3" in plane.gangs()["large"].get("message", ""))
    yield plane
    clear(plane, "here", "there", "large")


def test_it_names_the_job_to_move_and_moves_nothing(scattered):
    plan = json.loads(scattered.ok("defrag", "large", "-o", "json"))
    assert [move["job"] for move in plan["moves"]] in (["here"], ["there"])
    assert len(set(plan["nodes"].values())) == 3
    assert plan["price"] == sum(move["price"] for move in plan["moves"]) > 0
    assert "large would start if 1 job moved" in scattered.ok("defrag", "large")
    assert running(scattered, 2)
    refused = scattered.run("defrag", "here")
    assert refused.returncode == 1
    assert "here has nodes already" in refused.stderr


def test_agreed_to_it_moves_the_job_and_all_run(scattered):
    refused = scattered.run("defrag", "large", "--yes", "--max-price", "1s")
    assert refused.returncode == 1
    assert "1s of one GPU was agreed to" in refused.stderr
    assert running(scattered, 2)
    said = scattered.ok("defrag", "large", "--yes")
    assert "1 in place" in said.splitlines()[-1]
    eventually_sync(lambda: running(scattered, 3))
    moved = scattered.gangs()["large"]
    shown = moved["defragmentation"]
    assert (shown["phase"], len(shown["moves"])) == ("Done", 1)
    assert not moved.get("nominated")


def test_a_queues_policy_moves_them_without_a_request(plane):
    policy = {"after": "1s", "maxPrice": "100d", "coolDown": "0s"}
    make_queue(plane, "tidy", defragmentation=policy)
    scatter(plane, "--queue", "tidy")
    eventually_sync(lambda: running(plane, 3), 90.0)
    shown = plane.gangs()["large"]["defragmentation"]
    assert shown.get("request", "") == ""
    assert [move["name"] for move in shown["moves"]] in (["here"], ["there"])
    clear(plane, "here", "there", "large")


def pods(plane: ControlPlane, job: str) -> dict[str, str]:
    """Return the uids of a job's pods that have nodes."""
    items = plane.read("api/v1/namespaces/default/pods")["items"]
    placed = [one["metadata"] for one in items if one["spec"].get("nodeName")]
    return {one["name"]: one["uid"] for one in placed if one["name"].startswith(f"{job}-")}


def test_a_single_member_moves_while_the_others_stay(plane):
    make_queue(plane, "wide", strategy="Spread")
    submit(plane, "bend", 4, 4, "--min", "2", "--queue", "wide")
    eventually_sync(lambda: len(pods(plane, "bend")) == 4 and running(plane, 1), 90.0)
    before = pods(plane, "bend")
    submit(plane, "whole", 8, 1)
    plan = eventually_sync(lambda: json.loads(plane.ok("defrag", "whole", "-o", "json")), 90.0)
    (moved,) = plan["moves"][0]["pods"]
    plane.ok("defrag", "whole", "--yes")
    eventually_sync(lambda: running(plane, 2), 90.0)
    after = pods(plane, "bend")
    assert {name for name in before if before[name] != after.get(name)} == {moved}
    assert plane.get("bend")["status"].get("restarts", 0) == 0
    clear(plane, "bend", "whole")
