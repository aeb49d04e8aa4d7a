"""A NetworkCheck over the rails of three nodes: sound ones are healthy, a slow one is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.on_cluster import OnCluster
from tools.cluster import layout

RAIL = f"{layout.RAIL}={layout.RAILS}.0/24"
RATE, SLOW_RATE = "400mbit", "60mbit"
"""What a busy machine still carries, and what is slow beside it."""
SLOW = "node-2"


def check(cluster: OnCluster) -> tuple[int, dict[str, Any]]:
    done = cluster.lockstep("network", "check", "--rail", RAIL, "-o", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def rails(cluster: OnCluster) -> Iterator[OnCluster]:
    """The cluster with a rail of one rate on every node."""
    names = [one.name for one in cluster.cluster.record.all_nodes]
    for name in names:
        cluster.cluster.limit_rail(name, RATE)
    yield cluster
    for name in names:
        cluster.cluster.limit_rail(name)


def findings(cluster: OnCluster) -> list[str]:
    health = cluster.get("nodehealth", SLOW)
    return [one["cause"] for one in health.get("spec", {}).get("findings", [])]


def taints(cluster: OnCluster) -> list[str]:
    spec = cluster.get("node", SLOW)["spec"]
    return [f"{one['key']}:{one['effect']}" for one in spec.get("taints", [])]


def test_sound_rails_of_three_nodes_are_healthy(rails: OnCluster) -> None:
    code, said = check(rails)
    assert (code, said["verdict"]["kind"]) == (0, "healthy"), said
    nodes = [one.name for one in rails.cluster.record.all_nodes]
    pairs = {(a, b) for a in nodes for b in nodes if a < b}
    assert {(one["from"], one["to"]) for one in said["matrix"]} == pairs
    assert {one["rail"] for one in said["matrix"]} == {layout.RAIL}


def test_slow_rail_is_named_until_it_is_mended(rails: OnCluster) -> None:
    rails.cluster.limit_rail(SLOW, SLOW_RATE)
    code, said = check(rails)
    place = f"{SLOW}/{layout.RAIL}"
    assert (code, said["verdict"]["place"]) == (1, place), said
    assert any(place in one for one in findings(rails))
    taint = "lockstep.dev/slow-network:PreferNoSchedule"
    rails.wait(lambda: taint in taints(rails), 60, "its node is used last")
    rails.cluster.limit_rail(SLOW, RATE)
    code, said = check(rails)
    assert (code, said["verdict"]["kind"]) == (0, "healthy"), said
    rails.wait(lambda: taint not in taints(rails), 60, "its node is as the others")
