"""Nodes are filled in the order of a NodePolicy."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import add, draw_gang, node, places

from lockstep.api.node_policy import NodePolicy
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.timers import ARRIVAL
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.placement.preconditions import warnings
from lockstep.scheduler.core.state.cluster import Cluster


def policy(name: str, *tiers: str, queues: tuple[str, ...] = (), **selector: Any) -> NodePolicy:
    """A policy of tiers by the label ``pay``."""
    listed = [{"name": t, "selector": {"matchLabels": {"pay": t}, **selector}} for t in tiers]
    spec = {"tiers": listed, "queues": list(queues)}
    return convert({"metadata": {"name": name}, "spec": spec}, NodePolicy)


def cluster_of(**nodes: str) -> Cluster:
    """Nodes by name, each with how it is paid and its leaf: ``spot/l1``."""
    cluster = Cluster()
    for name, text in nodes.items():
        pay, _, leaf = text.partition("/")
        labels = {"pay": pay, "spine": "s", "leaf": leaf or "l"}
        cluster.set_node(node(name, labels=labels))
    return cluster


MIXED = {"a": "spot/l1", "b": "spot/l1", "c": "demand/l2", "d": "demand/l2", "e": "other/l1"}
CASES = [
    # what is shown, the gang, its node policy, the nodes by member
    ("the first tier is filled first", "g: 2x8", "p", ["c", "d"]),
    ("then the next one", "g: 3x8", "p", ["c", "d", "a"]),
    ("other nodes come last", "g: 5x8", "p", ["c", "d", "a", "b", "e"]),
    ("a required tier goes before the order", "g: 3x8 leaf", "p", ["a", "b", "e"]),
    ("small pods fill the first tier, too", "g: 17x1", "p", ["c"] * 8 + ["d"] * 8 + ["a"]),
    ("without a policy the tightest domain counts", "g: 3x8", "", ["a", "b", "e"]),
]


@pytest.mark.parametrize(("what", "text", "named", "expected"), CASES, ids=[c[0] for c in CASES])
def test_order(what, text, named, expected):
    cluster = cluster_of(**MIXED)
    cluster.set_node_policy(policy("p", "demand", "spot"))
    add(cluster, draw_gang(text, nodePolicy=named))
    Decider(cluster).decide(0.0)
    found = places(cluster, "g-")
    # In member order, so that those with the highest numbers, which go first, stand in the last.
    assert [found[f"g-{i}"] for i in range(len(expected))] == expected


LIKED = {
    "a": ("demand/l1", True),
    "b": ("demand/l2", False),
    "c": ("spot/l4", False),
    "d": ("spot/l3", True),
    "e": ("spot/l4", False),
    "f": ("spot/l4", False),
}
WISHES = [
    # what is shown, the gang, its nodes; a and d are tainted softly, and tight
    ("in a tier what is liked comes before what is tight", "g: 1x8", {"b"}),
    ("a tier is filled whole before the next one begins", "g: 2x8", {"a", "b"}),
    ("of the next one, too, what is liked comes first", "g: 3x8", {"a", "b", "c"}),
    ("and then the rest of it", "g: 6x8", set(LIKED)),
]


@pytest.mark.parametrize(("what", "text", "expected"), WISHES, ids=[c[0] for c in WISHES])
def test_wishes_count_inside_the_tiers(what: str, text: str, expected: set[str]) -> None:
    cluster = Cluster()
    for name, (place, soft) in LIKED.items():
        pay, _, leaf = place.partition("/")
        labels = {"pay": pay, "spine": "s", "leaf": leaf}
        cluster.set_node(node(name, labels=labels, soft=["slow"] if soft else []))
    cluster.set_node_policy(policy("p", "demand", "spot"))
    add(cluster, draw_gang(text, nodePolicy="p"))
    Decider(cluster).decide(0.0)
    assert set(places(cluster, "g-").values()) == expected


TIERS = ("demand", "spot", "other")
NODES = st.lists(
    st.tuples(st.sampled_from(TIERS), st.integers(0, 2), st.integers(0, 8), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(NODES, st.integers(1, 6), st.sampled_from([1, 3, 8]), st.sampled_from([None, "Spread"]))
def test_the_first_tiers_hold_all_pods_they_have_room_for(
    nodes: list[tuple[str, int, int, bool]], members: int, gpus: int, strategy: str | None
) -> None:
    cluster, room = Cluster(), dict.fromkeys(TIERS, 0)
    for number, (pay, leaf, free, soft) in enumerate(nodes):
        labels = {"pay": pay, "spine": "s", "leaf": f"l{leaf}"}
        cluster.set_node(
            node(f"n{number}", gpus=free, labels=labels, soft=["slow"] if soft else [])
        )
        room[pay] += free // gpus
    cluster.set_node_policy(policy("p", "demand", "spot"))
    add(cluster, draw_gang(f"g: {members}x{gpus}", nodePolicy="p", strategy=strategy))
    Decider(cluster).decide(0.0)
    found = Counter(nodes[int(name[1:])][0] for name in places(cluster, "g-").values())
    left, expected = members, dict.fromkeys(TIERS, 0)
    for tier in TIERS:
        expected[tier] = min(left, room[tier])
        left -= expected[tier]
    assert found == (Counter() if left else +Counter(expected))


def test_a_queue_brings_its_policy_and_gangs_may_name_another():
    for named, expected in (("", {"c"}), ("spot-first", {"a"})):
        cluster = cluster_of(**MIXED)
        cluster.set_node_policy(policy("z", "demand", "spot", queues=("default",)))
        cluster.set_node_policy(policy("spot-first", "spot"))
        add(cluster, draw_gang("g: 1x8", nodePolicy=named))
        Decider(cluster).decide(0.0)
        assert set(places(cluster, "g-").values()) == expected


def test_growing_goes_on_where_the_order_is():
    cluster = cluster_of(**MIXED)
    cluster.set_node_policy(policy("p", "demand", "spot"))
    drawn = draw_gang("g: 1..4x8", nodePolicy="p")
    later = drawn.pods.pop()
    decider = Decider(cluster)
    add(cluster, drawn)
    decider.decide(0.0)
    decider.decide(ARRIVAL.seconds)  # by then no fourth pod has come
    assert sorted(places(cluster, "g-").values()) == ["a", "c", "d"]
    cluster.set_pod(later)
    decider.decide(1.0)
    assert sorted(places(cluster, "g-").values()) == ["a", "b", "c", "d"]


def test_labels_are_matched_by_expressions():
    cluster = cluster_of(**MIXED)
    expression = {"key": "pay", "operator": "NotIn", "values": ["spot", "demand"]}
    tiers = [{"name": "t", "selector": {"matchExpressions": [expression]}}]
    spec = {"tiers": tiers}
    cluster.set_node_policy(convert({"metadata": {"name": "p"}, "spec": spec}, NodePolicy))
    add(cluster, draw_gang("g: 1x8", nodePolicy="p"))
    Decider(cluster).decide(0.0)
    assert set(places(cluster, "g-").values()) == {"e"}


def test_a_missing_policy_is_reported_and_does_not_block():
    cluster = cluster_of(**MIXED)
    add(cluster, draw_gang("g: 1x8", nodePolicy="none"))
    Decider(cluster).decide(0.0)
    assert places(cluster, "g-")
    found = warnings(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert "NodePolicyMissing" in [one.reason for one in found]
