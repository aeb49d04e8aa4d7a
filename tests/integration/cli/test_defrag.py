"""``defrag`` on a running control plane: shown, refused, carried out."""

from __future__ import annotations

import json

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

SIMULATED = ("--node-label", "lockstep.dev/node=simulated")


def submit(plane: ControlPlane, name: str, gpus: int, workers: int, *more: str) -> None:
    size = ("--gpus", str(gpus), "--workers", str(workers))
    plane.ok("submit", "plain", "--name", name, *size, *SIMULATED, *more, "--", "x")
    eventually_sync(lambda: name in plane.ok("list", "gangs"))


def running(plane: ControlPlane, count: int) -> bool:
    return plane.ok("list", "gangs").count("Running") == count


@pytest.fixture
def scattered(plane: ControlPlane):
    """Two elastic jobs, each on half of two nodes, and one that wants three of the four whole."""
    for number, name in enumerate(("here", "gone", "there")):  # 4 GPUs each, two to a node
        submit(plane, name, 2, 2, "--min", "1")
        eventually_sync(lambda number=number: running(plane, number + 1), 40.0)
    plane.ok("delete", "gone")
    submit(plane, "large", 8, 3)
    eventually_sync(lambda: "room for 2 of 3" in plane.ok("explain", "large"))
    yield plane
    plane.ok("delete", "here", "there", "large")
    eventually_sync(lambda: "large" not in plane.ok("list", "gangs"))


def test_it_names_the_job_whose_move_makes_room_and_moves_nothing(scattered):
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
    moved = scattered.ok("get", "gang/large", "-o", "json")
    shown = json.loads(moved)["status"]["defragmentation"]
    assert (shown["phase"], len(shown["moves"])) == ("Done", 1)
    assert not json.loads(moved)["status"].get("nominated")
