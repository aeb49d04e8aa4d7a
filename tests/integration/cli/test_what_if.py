"""``submit --what-if`` and ``snapshot`` on a running control plane."""

from __future__ import annotations

import json

THREE = ("--gpus", "8", "--workers", "3")


def test_what_if_says_when_and_where_and_sends_nothing(plane):
    asked = ("submit", "plain", "--simulated", "--name", "asked", "--gpus", "8", "--workers")
    assert "asked would start now, on sim-" in plane.ok(*asked, "2", "--what-if", "--", "x")
    plane.ok(*("submit", "plain", "--name", "there", "--simulated"), *THREE, "--", "x")
    plane.eventually_bound("there", 3)
    (answer,) = json.loads(plane.ok(*asked, "2", "--what-if", "-o", "json", "--", "x"))
    assert answer["starts"] is None
    assert answer["endless"] == 1
    assert answer["smaller"] == [
        {
            "roles": [{"role": "worker", "pods": pods, "instead": 2, "each": each}],
            "gpus": 8,
            "instead": 16,
        }
        for pods, each in ((1, {}), (2, {"nvidia.com/gpu": {"amount": "4", "instead": "8"}}))
    ]
    assert answer["tried"] == ["fewer pods of worker", "fewer GPUs in each pod"]
    text = plane.ok(*asked, "2", "--what-if", "--", "x")
    assert "with 1 instead of 2 pods of worker (8 of 16 GPUs) it would start now" in text
    assert "asked" not in plane.ok("list")
    plane.ok("delete", "there")


def test_a_snapshot_holds_no_commands_or_environments(plane, tmp_path):
    secret = ("--env", "TOKEN=hidden-value", "--", "hidden-command")
    plane.ok("submit", "plain", "--name", "quiet", "--simulated", "--gpus", "8", *secret)
    file = tmp_path / "snapshot.json"
    plane.ok("snapshot", str(file))
    text = file.read_text()
    assert "quiet" in text
    assert "hidden" not in text
    plane.ok("delete", "quiet")
