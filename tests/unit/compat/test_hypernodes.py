"""HyperNodes become labels of nodes and tiers: exact, regular expression, labels, nested."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import add, draw_gang, node, places

from lockstep.api.topology import Topology
from lockstep.api.wire import convert
from lockstep.compat.hypernodes import HyperNode, HyperNodes
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

LABEL = "hypernode.lockstep.dev/tier-{}"


def hypernode(name: str, tier: int, *members: dict[str, Any], tier_name: str = "") -> HyperNode:
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    return convert({"metadata": {"name": name}, "spec": spec}, HyperNode)


def exact(name: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def regex(pattern: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}


def labels(**match: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": match}}}


def domains(known: HyperNodes, name: str, **own: str) -> dict[int, str]:
    found = known.labelled(node(name, labels=own)).metadata.labels
    return {tier: found[LABEL.format(tier)] for tier in range(4) if LABEL.format(tier) in found}


CASES = [
    # what is shown, the HyperNodes, a node and its labels, the HyperNode of each tier
    ("by exact name", [hypernode("s0", 1, exact("n0"))], "n0", {}, {1: "s0"}),
    ("and no other", [hypernode("s0", 1, exact("n0"))], "n00", {}, {}),
    ("by expression", [hypernode("s0", 1, regex("^n[0-3]$"))], "n2", {}, {1: "s0"}),
    (
        "which need not be anchored",
        [hypernode("s0", 1, regex("rack7"))],
        "a-rack7-b",
        {},
        {1: "s0"},
    ),
    ("by labels", [hypernode("s0", 1, labels(rack="r"))], "n0", {"rack": "r"}, {1: "s0"}),
    ("which must be there", [hypernode("s0", 1, labels(rack="r"))], "n0", {"rack": "q"}, {}),
    (
        "nested, by exact name and by expression",
        [
            hypernode("s0", 1, exact("n0")),
            hypernode("p0", 2, exact("s0", "HyperNode")),
            hypernode("z", 3, regex("^p", "HyperNode")),
        ],
        "n0",
        {},
        {1: "s0", 2: "p0", 3: "z"},
    ),
    (
        "a tier may be left out",
        [hypernode("s0", 1, exact("n0")), hypernode("z", 3, exact("s0", "HyperNode"))],
        "n0",
        {},
        {1: "s0", 3: "z"},
    ),
    (
        "nodes may be members of a wide tier",
        [hypernode("p0", 2, exact("n0"))],
        "n0",
        {},
        {2: "p0"},
    ),
    (
        "of two of one tier the first by name",
        [hypernode("t", 1, exact("n0")), hypernode("s", 1, exact("n0"))],
        "n0",
        {},
        {1: "s"},
    ),
    (
        "a circle ends",
        [
            hypernode("a", 1, exact("n0"), exact("b", "HyperNode")),
            hypernode("b", 2, exact("a", "HyperNode")),
        ],
        "n0",
        {},
        {1: "a", 2: "b"},
    ),
]


@pytest.mark.parametrize(
    ("what", "known", "name", "own", "expected"), CASES, ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("first", ["hypernodes", "nodes"])
def test_membership(what, known, name, own, expected, first):  # noqa: PLR0917 - a table
    held = HyperNodes()
    if first == "nodes":
        held.labelled(node(name, labels=own))
    for one in known:
        held.set(one)
    assert domains(held, name, **own) == expected


def test_what_is_taken_away_holds_no_node_any_more():
    held = HyperNodes()
    for one in (hypernode("s0", 1, exact("n0")), hypernode("p", 2, exact("s0", "HyperNode"))):
        held.set(one)
    held.set(hypernode("s0", 1, exact("n1")))
    assert domains(held, "n0") == {}
    assert domains(held, "n1") == {1: "s0", 2: "p"}
    held.remove("p")
    assert domains(held, "n1") == {1: "s0"}
    held.remove("s0")
    assert held.topology() is None


def test_an_expression_that_is_none_is_told_and_matches_nothing():
    held = HyperNodes()
    held.set(hypernode("s0", 1, regex("("), exact("n0")))
    assert domains(held, "n0") == {1: "s0"}
    assert "s0" in held.problems


def test_tiers_are_the_widest_first_and_named_where_all_agree():
    held = HyperNodes()
    for one in (
        hypernode("s0", 1, tier_name="leaf"),
        hypernode("s1", 1, tier_name="leaf"),
        hypernode("p0", 2, tier_name="spine"),
        hypernode("p1", 2, tier_name="other"),
    ):
        held.set(one)
    topology = held.topology()
    assert topology is not None
    assert [tier.name for tier in topology.spec.tiers] == ["tier-2", "leaf", "node"]


def placed(held: HyperNodes, text: str, *more: Topology) -> set[str]:
    cluster = Cluster()
    for topology in (held.topology(), *more):
        assert topology is not None
        cluster.set_topology(topology)
    for name in ("a1", "a2", "b1", "b2", "b3"):
        cluster.set_node(held.labelled(node(name, labels={"rack": "x"})))
    add(cluster, draw_gang(text))
    Decider(cluster).decide(0.0)
    return set(places(cluster, "g-").values())


def test_gangs_keep_to_the_tiers_of_hypernodes():
    held = HyperNodes()
    held.set(hypernode("a", 1, regex("^a"), tier_name="switch"))
    held.set(hypernode("b", 1, regex("^b"), tier_name="switch"))
    assert placed(held, "g: 3x8 switch") == {"b1", "b2", "b3"}
    assert placed(held, "g: 4x8 switch") == {""} - {""}


def test_a_topology_of_ours_goes_before_hypernodes():
    held = HyperNodes()
    held.set(hypernode("a", 1, regex("^a")))
    held.set(hypernode("b", 1, regex("^b")))
    tiers = {"tiers": [{"name": "rack", "label": "rack"}]}
    own = convert({"metadata": {"name": "default"}, "spec": tiers}, Topology)
    assert len(placed(held, "g: 5x8 rack", own)) == 5
