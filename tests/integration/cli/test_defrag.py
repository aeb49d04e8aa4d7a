"""``defrag`` on a running control plane."""

from __future__ import annotations

import json

from tests.support.waiting import eventually_sync

SIMULATED = ("--node-label", "lockstep.dev/node=simulated")


def test_it_names_the_job_whose_move_makes_room_and_moves_nothing(plane):
    def submit(name: str, gpus: int, workers: int, *more: str) -> None:
        size = ("--gpus", str(gpus), "--workers", str(workers))
        plane.ok("submit", "plain", "--name", name, *size, *SIMULATED, *more, "--", "x")
        eventually_sync(lambda: name in plane.ok("list", "gangs"))

    def running(count: int) -> bool:
        return plane.ok("list", "gangs").count("Running") == count

    for number, name in enumerate(("here", "gone", "there")):  # 4 GPUs each, two to a node
        submit(name, 2, 2, "--min", "1")
        eventually_sync(lambda number=number: running(number + 1))
    plane.ok("delete", "gone")
    submit("large", 8, 3)
    eventually_sync(lambda: "room for 2 of 3" in plane.ok("explain", "large"))
    plan = json.loads(plane.ok("defrag", "large", "-o", "json"))
    assert [move["job"] for move in plan["moves"]] in (["here"], ["there"])
    assert len(set(plan["nodes"].values())) == 3
    assert "large would start if 1 job moved" in plane.ok("defrag", "large")
    assert running(2)
    refused = plane.run("defrag", "here")
    assert refused.returncode == 1
    assert "here has nodes already" in refused.stderr
    plane.ok("delete", "here", "there", "large")
