"""Placement as tables: a cluster drawn in a few lines, gangs, and where they end up."""

import pytest
from tests.support.drawn import add, draw, draw_gang, places, pod

from lockstep.api.queue import Queue
from lockstep.api.wire import convert
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster

TWO_SPINES = """
    s1/l1: a1:8 a2:8
    s1/l2: b1:8 b2:8
    s2/l1: c1:8 c2:8 c3:8
"""

CASES = [
    # what is shown, the cluster, the gangs in order of age, nodes by gang (None: waits)
    (
        "equal leaf names under different spines are different leaves",
        "s1/l1: a:8\n s2/l1: b:8",
        ["g: 2x8 leaf"],
        {"g": None},
    ),
    (
        "the tightest leaf that holds the gang is taken",
        TWO_SPINES,
        ["g: 3x8 leaf"],
        {"g": "c1 c2 c3"},
    ),
    (
        "two nodes go under one leaf with nothing left over, not into the larger leaf",
        TWO_SPINES,
        ["g: 2x8 leaf"],
        {"g": "a1 a2"},
    ),
    (
        "a required spine is met by a leaf inside it where that suffices",
        TWO_SPINES,
        ["g: 2x8 spine"],
        {"g": "a1 a2"},
    ),
    (
        "a gang that no leaf holds spans the spine that does",
        TWO_SPINES,
        ["g: 4x8 spine"],
        {"g": "a1 a2 b1 b2"},
    ),
    (
        "too large for any spine: waits whole",
        TWO_SPINES,
        ["g: 5x8 spine"],
        {"g": None},
    ),
    (
        "preferred only: walks up to the whole cluster",
        TWO_SPINES,
        ["g: 5x8 ~leaf"],
        {"g": "a1 a2 b1 b2 c1"},
    ),
    (
        "a sum over a leaf that no node can honour is not believed",
        "s1/l1: a:8-4 b:8-4",
        ["g: 1x8 leaf"],
        {"g": None},
    ),
    (
        "small pods share a node that others use already and leave the free one whole",
        "s1/l1: a:8 b:8-4",
        ["g: 2x2"],
        {"g": "b b"},
    ),
    (
        "a gang that does not fit lets a younger one pass",
        "s1/l1: a:8 b:8",
        ["big: 3x8", "small: 1x8"],
        {"big": None, "small": "a"},
    ),
    (
        "all or nothing: the second gang gets none of the last nodes",
        "s1/l1: a:8 b:8 c:8",
        ["one: 2x8", "two: 2x8"],
        {"one": "a b", "two": None},
    ),
    (
        "tainted, cordoned and unready nodes are no places",
        "s1/l1: a:8!maintenance b:8~ c:8? d:8",
        ["one: 1x8", "two: 1x8"],
        {"one": "d", "two": None},
    ),
    (
        "roles are placed together, CPU pods away from GPUs",
        "s1/l1: a:8 b:8 z:0",
        ["g: head=1xcpu4 + worker=2x8"],
        {"g": "z a b"},
    ),
    (
        "one role does not fit: none is placed",
        "s1/l1: a:8",
        ["g: head=1xcpu4 + worker=2x8"],
        {"g": None},
    ),
    (
        "an elastic gang takes what there is above its minimum",
        "s1/l1: a:8 b:8 c:8",
        ["g: 2..4x8"],
        {"g": "a b c"},
    ),
    (
        "the minimum of every role comes before the extras of any",
        "s1/l1: a:8 b:8",
        ["g: worker=1..4x8 + head=1x8"],
        {"g": "a b"},
    ),
    (
        "a group has a wish of its own inside the gang's",
        TWO_SPINES,
        ["g: ps=2xcpu1 + worker=3x8@leaf"],
        {"g": "c1 c1 c1 c2 c3"},
    ),
    (
        "two groups each under a leaf of their own",
        TWO_SPINES,
        ["g: x=2x8@leaf + y=2x8@leaf spine"],
        {"g": "a1 a2 b1 b2"},
    ),
    (
        "of equally tight spines that in which the members touch fewer leaves",
        "s1/l1: a1:8 a2:8\n s1/l2: b1:8 b2:8\n s1/l3: c:8\n"
        "s2/l1: d1:8 d2:8 d3:8\n s2/l2: e1:8 e2:8",
        ["g: 5x8 spine"],
        {"g": "d1 d2 d3 e1 e2"},
    ),
    (
        "of equally tight leaves that in which the members touch fewer nodes",
        "s1/l1: a1:4 a2:4 a3:4 a4:4\n s1/l2: b1:8 b2:8",
        ["g: 4x4 leaf"],
        {"g": "b1 b1 b2 b2"},
    ),
    (
        "nodes that are whole stay whole before the members touch fewer of them",
        "s1/l1: b1:8 b2:8\n s1/l2: c1:8-4 c2:8-4 c3:8-4 c4:8-4",
        ["g: 4x4 leaf"],
        {"g": "c1 c2 c3 c4"},
    ),
    (
        "of spines that differ in the order of their leaves alone the first by name",
        "s1/l1: a1:8 a2:8\n s1/l2: b1:8\n s2/l1: c:8\n s2/l2: d1:8 d2:8",
        ["g: 3x8 spine"],
        {"g": "a1 a2 b1"},
    ),
    (
        "a tighter spine goes before one in which the members touch fewer leaves",
        "s1/l1: a1:8 a2:8\n s1/l2: b1:8 b2:8\n s1/l3: c:8\n"
        "s2/l1: d1:8 d2:8 d3:8\n s2/l2: e1:8 e2:8 e3:8",
        ["g: 5x8 spine"],
        {"g": "a1 a2 b1 b2 c"},
    ),
]


@pytest.mark.parametrize(("what", "drawing", "gangs", "expected"), CASES, ids=[c[0] for c in CASES])
def test_placement(what, drawing, gangs, expected):
    cluster = draw(Cluster(), drawing)
    for age, text in enumerate(gangs):
        add(cluster, draw_gang(text, created=f"2026-01-01T00:00:{age:02}Z"))
    Decider(cluster).decide(0.0)
    for name, nodes in expected.items():
        found = places(cluster, f"{name}-")
        assert sorted(found.values()) == sorted((nodes or "").split()), what


def test_spread_uses_as_many_nodes_as_possible():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8-4\n s2/l1: c:8 d:8")
    add(cluster, draw_gang("g: 4x1", strategy="Spread"))
    Decider(cluster).decide(0.0)
    assert sorted(places(cluster, "g-").values()) == ["a", "b", "c", "d"]


def test_neighbours_in_name_become_neighbours_in_the_network():
    cluster = draw(Cluster(), TWO_SPINES)
    add(cluster, draw_gang("g: 4x8 spine"))
    Decider(cluster).decide(0.0)
    found = places(cluster, "g-")
    assert [found[f"g-{i}"] for i in range(4)] == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ({"priority": 0}, {"priority": 10}, "second"),
        ({"priority": 5}, {"priority": 5}, "first"),
    ],
)
def test_order_is_priority_then_age(first, second, winner):
    cluster = draw(Cluster(), "s1/l1: a:8")
    cluster.set_pod(pod("first", gpus=8, created="2026-01-01T00:00:00Z", **first))
    cluster.set_pod(pod("second", gpus=8, created="2026-01-01T00:00:01Z", **second))
    decider = Decider(cluster)
    result = decider.decide(0.0)
    assert places(cluster) == {winner: "a"}
    assert {key.name for key in result.failed} == {"first", "second"} - {winner}


STRATEGIES = [
    # what is shown, the gang's own, its queue's, that of the queue above, nodes used by four pods
    ("nodes are filled where nobody says otherwise", None, None, None, 1),
    ("the gang's own", "Spread", None, None, 4),
    ("its queue's", None, "Spread", None, 4),
    ("that of the queue above", None, None, "Spread", 4),
    ("the gang's own goes before its queue's", "Binpack", "Spread", None, 1),
    ("the queue's goes before the one above", None, "Binpack", "Spread", 1),
]


@pytest.mark.parametrize("case", STRATEGIES, ids=[s[0] for s in STRATEGIES])
def test_strategy(case):
    _, own, queue, above, used = case
    cluster = draw(Cluster(), "s1/l1: a:8 b:8 c:8 d:8")
    cluster.set_queue(_queue("top", strategy=above))
    cluster.set_queue(_queue("team", parent="top", strategy=queue))
    add(cluster, draw_gang("g: 4x1", queue="team", strategy=own))
    Decider(cluster).decide(0.0)
    assert len(set(places(cluster, "g-").values())) == used


@pytest.mark.parametrize("case", STRATEGIES[:4], ids=[s[0] for s in STRATEGIES[:4]])
def test_pods_of_no_gang_follow_their_queue(case):
    _, own, queue, above, used = case
    cluster = draw(Cluster(), "s1/l1: a:8 b:8 c:8 d:8")
    cluster.set_queue(_queue("top", strategy=above))
    cluster.set_queue(_queue("team", parent="top", strategy=own or queue))
    for i in range(4):
        cluster.set_pod(pod(f"p{i}", gpus=1, labels={"lockstep.dev/queue": "team"}))
    Decider(cluster).decide(0.0)
    assert len(set(places(cluster).values())) == used


def test_a_spreading_pod_does_not_follow_a_similar_filling_one():
    cluster = draw(Cluster(), "s1/l1: a:8 b:8-1 c:8")
    cluster.set_queue(_queue("fills"))
    cluster.set_queue(_queue("spreads", strategy="Spread"))
    for number, name in enumerate(("fills", "spreads", "fills", "spreads")):
        labels = {"lockstep.dev/queue": name}
        created = f"2026-01-01T00:00:0{number}Z"
        cluster.set_pod(pod(f"{name}-{number}", gpus=1, labels=labels, created=created))
    Decider(cluster).decide(0.0)
    assert places(cluster, "fills") == {"fills-0": "b", "fills-2": "b"}
    assert places(cluster, "spreads") == {"spreads-1": "a", "spreads-3": "c"}


def test_a_queues_new_strategy_applies_to_its_waiting_gangs():
    cluster = draw(Cluster(), "s1/l1: a:2 b:1")
    cluster.set_queue(_queue("team"))
    decider = Decider(cluster)
    add(cluster, draw_gang("first: 1x1"))
    add(cluster, draw_gang("g: 2x1", queue="team", created="2026-01-02T00:00:00Z"))
    cluster.set_pod(pod("there", gpus=1, on="a", held="1"))
    decider.decide(0.0)
    cluster.set_queue(_queue("team", strategy="Spread"))
    cluster.remove_pod("default", "there")
    cluster.remove_pod("default", "first-0")
    decider.decide(1.0)
    assert len(set(places(cluster, "g-").values())) == 2


def _queue(name: str, **spec: object) -> Queue:
    return convert({"metadata": {"name": name}, "spec": spec}, Queue)
