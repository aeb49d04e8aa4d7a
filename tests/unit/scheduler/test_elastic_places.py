"""Gangs that want more members than they need: as many stand as have a place."""

from __future__ import annotations

import pytest
from tests.support.running import Running

CASES = {
    # nodes, the gang, which nodes its members take
    "a group of min 0 goes where its members have room": (
        "s/l: a:0 b:4",
        "g: g0=1x2 + g1=0..3x1@node",
        {"g-g0-0": "b", "g-g1-0": "b", "g-g1-1": "b"},
    ),
    "a group goes to the domain that leaves most of it room": (
        "s/l: a:4 b:4",
        "g: g0=1x2 + g1=1..6x1@node",
        {"g-g0-0": "a", "g-g1-0": "b", "g-g1-1": "b", "g-g1-2": "b", "g-g1-3": "b"},
    ),
    "the roomiest domain holds more of an elastic group": (
        "s/l: a:2 b:4 c:3",
        "g: g1=1..6x1@node",
        {"g-g1-0": "b", "g-g1-1": "b", "g-g1-2": "b", "g-g1-3": "b"},
    ),
    "a rigid group still takes the tightest domain": (
        "s/l: a:4 b:2",
        "g: g1=2x1@node",
        {"g-g1-0": "b", "g-g1-1": "b"},
    ),
    "members above the minimum go to soft taints in the leaf": (
        "s/l0: n0:1%soft n2:4\ns/l2: n1:2",
        "g: 1..6x1 leaf",
        {"g-0": "n0", "g-1": "n2", "g-2": "n2", "g-3": "n2", "g-4": "n2"},
    ),
    "soft taints are left alone where all fit elsewhere": (
        "s/l0: n0:2%soft n2:4",
        "g: 1..4x1 leaf",
        {"g-0": "n2", "g-1": "n2", "g-2": "n2", "g-3": "n2"},
    ),
}


@pytest.mark.parametrize(("nodes", "gang", "expected"), CASES.values(), ids=CASES)
def test_elastic_gangs_take_all_room_there_is(
    nodes: str, gang: str, expected: dict[str, str]
) -> None:
    world = Running.on(nodes)
    world.submit(gang)
    world.settle()
    assert world.places("g") == expected


def test_members_join_later_on_nodes_with_soft_taints():
    world = Running.on("s/l0: n0:1-1%soft n2:4")
    world.submit("g: 1..6x1 leaf")
    world.settle()
    assert len(world.places("g")) == 4
    world.cluster.remove_pod("default", "hold-n0")
    world.settle()
    assert world.places("g")["g-4"] == "n0"


LABELS = {
    # nodes, the gang, whether it starts
    "a group's tier without label": ("-/l0: n0:4", "g: w=1x2@spine", False),
    "a gang's tier without label": ("-/l0: n0:4", "g: w=1x2 spine", False),
    "a group's tier beside nodes without label": ("-/l0: n0:4\ns/l1: n1:2", "g: w=1x2@spine", True),
    "a group's tier with too little labelled": ("-/l0: n0:4\ns/l1: n1:1", "g: w=1x2@spine", False),
    "a preferred tier without label": ("-/l0: n0:4", "g: w=1x2@~spine", True),
}


@pytest.mark.parametrize(("nodes", "gang", "starts"), LABELS.values(), ids=LABELS)
def test_a_required_tier_needs_its_label(nodes: str, gang: str, starts: bool) -> None:
    world = Running.on(nodes)
    world.submit(gang)
    world.settle()
    assert bool(world.places("g")) == starts
    assert "n0" not in world.places("g").values() or "~" in gang
