"""A rail that carries nothing is named, and a node whose agent is gone is told apart from it."""

from __future__ import annotations

import subprocess

import pytest
from tests.support.network_world import World

pytestmark = pytest.mark.xdist_group("network")


def test_a_rail_that_is_cut_is_named(world: World) -> None:
    cut = world.fabric.inside("switch", "ip", "link", "set", "s3-1")
    subprocess.run([*cut, "nomaster"], check=True)
    try:
        code, said = world.check("--patience", "3", "--seconds", "0.05")
    finally:
        subprocess.run([*cut, "master", "br1"], check=True)
    assert code == 1
    assert said["verdict"]["place"] == "n3/rail1", said
    told = [one for one in said["checks"] if one["state"] == "fail"]
    measured = [one["place"] for one in told if one["group"] == "function"]
    assert measured == ["n3/rail1"], told
    # What the others see of it is said of theirs.
    assert all("10.61.0.3 does not answer" in one["evidence"] for one in told[1:]), told


def test_a_node_without_an_agent_is_silent(world: World) -> None:
    world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n9"}})
    try:
        code, said = world.check("--patience", "2", "--seconds", "0.05")
    finally:
        world.delete("/api/v1/nodes/n9")
    assert code == 1
    assert (said["verdict"]["kind"], said["verdict"]["place"]) == ("silent", "n9"), said
