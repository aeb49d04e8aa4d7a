"""Taking the place of others: who may, whose, which goes first, and to whom it then belongs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.drawn import gang, node, pod
from tests.support.running import Running

from lockstep.api.core import PriorityClass
from lockstep.api.meta import ObjectMeta
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.preemption.nominated_placement import VICTIM_SECONDS

GPU = "nvidia.com/gpu"
Queues = dict[str, dict[str, Any]]


def gpus(amount: int) -> dict[str, int]:
    return {GPU: amount}


TWO = "s/l: a:8 b:8"
FOUR = "s/x: a:8 b:8\n s/y: c:8 d:8"
FIVE = "s/x: a:8 b:8 c:8 d:8 e:8"

# name: drawing, queues, what runs (text, queue, priority), who comes, who has gone, who stands
CASES: dict[str, Any] = {
    "the less important makes room": (
        TWO, {}, [("x: 1x8", "q", "low"), ("y: 1x8", "q", "")], ("z: 1x8", "q", "high"), "x", "yz",
    ),
    "equals do not": (TWO, {}, [("x: 2x8", "q", "high")], ("z: 1x8", "q", "high"), "", "x"),
    "the more important does not": (
        TWO, {}, [("x: 2x8", "q", "")], ("z: 1x8", "q", "low"), "", "x",
    ),
    "a gang goes whole": (TWO, {}, [("x: 2x8", "q", "low")], ("z: 1x8", "q", ""), "x", "z"),
    "only where that helps": (
        TWO, {}, [("x: 1x8", "q", "low"), ("y: 1x8", "q", "top")], ("z: 2x8", "q", ""), "", "xy",
    ),
    "where a gang goes whole the unit stands on all of that before others go": (
        FIVE, {}, [("x: 1x8", "q", "low"), ("y: 1x8", "q", ""), ("v: 3x8", "q", "high")],
        ("z: 4x8", "q", "top"), "vx", "yz",
    ),
    "extras go before whole gangs": (
        FOUR, {}, [("x: 1..3x8", "q", ""), ("y: 1x8", "q", "low")], ("z: 2x8", "q", "high"), "x",
        "xyz",
    ),
    "not from another queue": (
        TWO, {"q": {}, "r": {}}, [("x: 2x8", "r", "low")], ("z: 1x8", "q", "top"), "", "x",
    ),
    "not where the queue does not preempt": (
        TWO, {"q": {"preemption": "Never"}}, [("x: 2x8", "q", "low")], ("z: 1x8", "q", ""), "", "x",
    ),
    "not where a queue around it does not, whatever its part says": (
        TWO,
        {
            "org": {"preemption": "Never"},
            "dep": {"parent": "org"},
            "q": {"parent": "dep", "preemption": "LowerPriority"},
        },
        [("x: 2x8", "q", "low")], ("z: 1x8", "q", ""), "", "x",
    ),
    "nor where gangs are in a queue with parts that does not": (
        TWO, {"q": {"preemption": "Never"}, "part": {"parent": "q"}}, [("x: 2x8", "q", "low")],
        ("z: 1x8", "q", ""), "", "x",
    ),
    "but for a part of one that does not, others do": (
        TWO, {"org": {}, "shy": {"parent": "org", "preemption": "Never"}, "q": {"parent": "org"}},
        [("x: 2x8", "q", "low")], ("z: 1x8", "q", ""), "x", "z",
    ),
    "what is guaranteed is reclaimed where nobody preempts": (
        TWO,
        {
            "org": {"preemption": "Never"},
            "q": {"parent": "org", "guaranteed": gpus(8)},
            "r": {"parent": "org"},
        },
        [("x: 2x8", "r", "top")], ("z: 1x8", "q", "low"), "x", "z",
    ),
    "where the queue's limit is what lacks": (
        TWO, {"q": {"limit": gpus(8)}}, [("x: 1x8", "q", "low")], ("z: 1x8", "q", ""), "x", "z",
    ),
    "where what others do not lend is what lacks": (
        TWO, {"q": {}, "r": {"guaranteed": gpus(8), "lending": "Never"}}, [("x: 1x8", "q", "low")],
        ("z: 1x8", "q", ""), "x", "z",
    ),
    "and nobody more than that": (
        FOUR, {"q": {}, "r": {"guaranteed": gpus(8), "lendingLimit": gpus(0)}},
        [("w: 2x8", "q", "low"), ("x: 1x8", "q", "low")], ("z: 1x8", "q", ""), "x", "wz",
    ),
    "what a part keeps for itself counts as used by its whole": (
        TWO, {"p": {"guaranteed": gpus(8)}, "r": {"parent": "p"}, "q": {"guaranteed": gpus(8)},
              "k": {"parent": "p", "guaranteed": gpus(8), "lending": "Never"}},
        [("x: 1x8", "r", "top")], ("z: 1x8", "q", "low"), "x", "z",
    ),
    "a part claims nothing that another part keeps for itself": (
        TWO, {"p": {"guaranteed": gpus(8)}, "q": {"parent": "p"}, "r": {},
              "k": {"parent": "p", "guaranteed": gpus(8), "lending": "Never"}},
        [("x: 1x8", "r", "low")], ("z: 1x8", "q", "top"), "", "x",
    ),
    "a part claims what it does not lend": (
        TWO, {"p": {"guaranteed": gpus(8)}, "r": {},
              "q": {"parent": "p", "guaranteed": gpus(8), "lendingLimit": gpus(4)}},
        [("y: 1x4", "r", "low"), ("x: 1x8", "r", "")], ("z: 1x8", "q", "low"), "y", "xz",
    ),
    "a borrowing gang gives back": (
        TWO, {"q": {"guaranteed": gpus(8)}, "r": {}}, [("x: 2x8", "r", "top")],
        ("z: 1x8", "q", "low"), "x", "z",
    ),
    "no more than what is needed is given back": (
        TWO, {"q": {"guaranteed": gpus(8)}, "r": {}}, [("x: 1x8", "r", ""), ("y: 1x8", "r", "low")],
        ("z: 1x8", "q", ""), "y", "xz",
    ),
    "what is guaranteed is not taken back": (
        TWO, {"q": {"guaranteed": gpus(16)}, "r": {"guaranteed": gpus(8)}},
        [("x: 1x8", "r", "low"), ("y: 1x8", "r", "low")], ("z: 2x8", "q", "top"), "", "xy",
    ),
    "a queue beyond its share takes nothing": (
        TWO, {"q": {"guaranteed": gpus(8)}, "r": {}}, [("x: 2x8", "r", "low")],
        ("z: 2x8", "q", "top"), "", "x",
    ),
    "of a queue partly within its share the least important goes": (
        FOUR, {"q": {"guaranteed": gpus(8)}, "r": {"guaranteed": gpus(16)}},
        [("w: 1x8", "r", "high"), ("x: 1x8", "r", "low"), ("y: 1x8", "r", ""), ("v: 1x8", "r", "")],
        ("z: 1x8", "q", ""), "x", "vwyz",
    ),
    "a part reclaims for its whole": (
        TWO, {"org": {"guaranteed": gpus(8)}, "q": {"parent": "org"}, "r": {}},
        [("x: 1x8", "r", ""), ("y: 1x8", "r", "")], ("z: 1x8", "q", ""), "y", "xz",
    ),
    "a whole within its share is left alone, its parts settle among themselves": (
        TWO,
        {
            "org": {"guaranteed": gpus(16)},
            "q": {"parent": "org", "guaranteed": gpus(8)},
            "r": {"parent": "org"},
            "t": {"guaranteed": gpus(8)},
        },
        [("x: 1x8", "r", ""), ("y: 1x8", "r", "")], ("z: 1x8", "q", ""), "y", "xz",
    ),
    "one beyond the share does not take the place of one within": (
        TWO, {"q": {"guaranteed": gpus(8)}, "r": {}}, [("x: 1x8", "q", "low")],
        ("z: 2x8", "q", "top"), "", "x",
    ),
    "topology: what is freed is where it stands": (
        FOUR, {}, [("w: 1x8", "q", "low"), ("x: 1x8", "q", ""), ("y: 2x8 leaf", "q", "low")],
        ("z: 2x8 leaf", "q", "high"), "y", "wxz",
    ),
    "topology: not those whose going does not help": (
        "s/x: a:8\n s/y: c:8 d:8", {}, [("w: 1x8", "q", "low"), ("y: 2x8 leaf", "q", "")],
        ("z: 2x8 leaf", "q", "high"), "y", "wz",
    ),
    "a limit of the whole, kept by the part that borrows": (
        FOUR,
        {
            "org": {"limit": gpus(16)},
            "q": {"parent": "org", "guaranteed": gpus(8)},
            "r": {"parent": "org"},
        },
        [("x: 1x8", "r", ""), ("y: 1x8", "r", "low")], ("z: 1x8", "q", "low"), "y", "xz",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_goes(case: tuple[str, Queues, list[tuple[str, str, str]], Any, str, str]) -> None:
    drawing, queues, there, comes, gone, stands = case
    world = Running.on(drawing, queues)
    for text, queue, priority in there:
        world.run(text, queue, priority)
    assert world.there() == {text[0] for text, _, _ in there}
    world.run(*comes)
    assert sorted(set(world.evicted)) == sorted(gone)
    assert world.there() == set(stands)


def test_an_elastic_gang_loses_extras_and_keeps_its_minimum():
    world = Running.on(FOUR)
    world.run("x: 2..4x8", priority="low")
    world.run("z: 2x8", priority="high")
    assert len(world.places("x")) == len(world.places("z")) == 2
    world.run("t: 1x8", priority="top")
    assert (len(world.places("x")), len(world.places("z"))) == (0, 2), "then it goes whole"


def test_spares_go_before_members_of_others_that_work():
    world = Running.on(FOUR)
    world.run("x: 1..2x8", priority="low")
    world.run("z: 1..2x8^1", priority="high")
    world.run("t: 1x8", priority="top")
    assert (set(world.places("x")), set(world.places("z"))) == ({"x-0", "x-1"}, {"z-0"})
    world.run("u: 1x8", priority="top")
    assert (set(world.places("x")), set(world.places("z"))) == ({"x-0"}, {"z-0"})


@pytest.mark.parametrize(
    ("queues", "priority"),
    [({}, "low"), ({"q": {"guaranteed": gpus(32)}, "r": {}}, "top")],
    ids=["to the more important", "to whom it is guaranteed"],
)
def test_the_last_members_above_the_minimum_go_first(queues: Queues, priority: str):
    world = Running.on("s/x: a:16 b:16 c:16\n s/y: d:16 e:16 f:16", queues)
    world.run("x: 2..12x8", "q" if not queues else "r", priority)
    world.run("z: 4x8", "q", "high")
    assert len(world.places("z")) == 4
    assert sorted(set(world.places("x"))) == sorted(f"x-{i}" for i in range(8))


@pytest.mark.parametrize(
    ("guaranteed", "comes", "left"),
    [
        (0, "z: 2x8", 2),
        (8, "z: 2x8", 2),
        (16, "z: 2x8", 2),
        (24, "z: 2x8", 4),  # one alone would be of no help
        (24, "z: 1x8", 3),
        (32, "z: 1x8", 4),
    ],
)
def test_borrowed_members_above_a_guaranteed_minimum_are_given_back(
    guaranteed: int, comes: str, left: int
):
    world = Running.on(FOUR, {"q": {"guaranteed": gpus(16)}, "r": {"guaranteed": gpus(guaranteed)}})
    world.run("x: 2..4x8", "r", "top")
    world.run(comes, "q", "low")
    assert len(world.places("x")) == left
    assert ("z" in world.there()) == (left < 4)


@pytest.mark.parametrize("graceful", [False, True], ids=["at once", "in their own time"])
@pytest.mark.parametrize(
    ("nodes", "elastic", "left"),
    [
        pytest.param("a:8 b:4 c:8", "2..3x4", set(), id="no room for its minimum elsewhere"),
        pytest.param("a:8 b:4 c:8", "1..3x4", {"b"}, id="room for its only needed member"),
    ],
)
def test_a_gang_does_not_grow_while_it_is_evicted(
    nodes: str, elastic: str, left: set[str], graceful: bool
):
    world = Running.on(f"s/l: {nodes}")
    world.graceful = graceful
    for name, size in (("b", nodes[6]), ("c", 8)):
        world.submit(f"on-{name}: 1x{size}", priority="high")
        world.stand(f"on-{name}", [name])
    world.run(f"e: {elastic}", priority="low")
    assert set(world.places("e").values()) == {"a"}
    world.submit("h: 2x8")
    world.end("on-b")
    world.end("on-c")
    for _ in range(5):
        world.settle()
        assert not 0 < len(world.places("e")) < int(elastic[0])
        for one in list(world.gangs["e"].pods):
            if world.cluster.pods["default", one.metadata.name].terminating:
                world.renew(one.metadata.name)
        world.now += 1.0
    assert len(world.places("h")) == 2
    assert set(world.places("e").values()) == left


@pytest.mark.parametrize(
    ("first", "second", "victim"),
    [
        ({}, {"saved": 0.0}, "y"),  # saved a moment ago: little is lost
        ({"saved": 0.0}, {}, "x"),
        ({}, {}, "y"),  # began later
    ],
)
def test_of_equals_the_one_goes_whose_work_is_least_lost(
    first: dict[str, float], second: dict[str, float], victim: str
):
    world = Running.on(TWO)
    for text, saved in (("x: 1x8", first), ("y: 1x8", second)):
        when = {"lockstep.dev/checkpoint": "1970-01-12T14:00:00Z"} if saved else {}
        world.run(text, annotations=when)
        world.now += 600
    world.now = 1_000_000.0 + 1200
    world.run("z: 1x8", priority="high")
    assert world.evicted == [victim]


def test_no_other_gang_takes_room_or_quota_being_freed():
    world = Running.on(TWO, {"q": {"limit": gpus(16)}})
    world.graceful = True
    world.run("x: 1x8", "q", "low")
    world.run("y: 1x8", "q", "low")
    world.run("z: 2x8", "q", "high")
    assert sorted(world.evicted) == ["x", "y"]
    world.submit("other: 1x8", "q", "low")
    world.submit("small: 1x1", "q", "high")
    world.end("x")
    world.settle()
    assert world.there() == set(), "the first node is free and kept"
    assert world.why("z") == (
        "Preempting",
        "takes the place of gang y (1 pod): a and b kept free for it until they have ended",
    )
    assert sorted(world.evicted) == ["x", "y"], "nobody goes twice"
    world.end("y")
    world.settle()
    assert world.there() == {"z"}
    assert world.cluster.table.held.sum() == 0
    assert world.cluster.ledger.promises == {}


@pytest.mark.parametrize("space", ["default", "other"])
def test_no_namespace_is_told_names_of_another(space: str):
    world = Running.on(TWO)
    world.submit("victim: 1x8", "", "low")
    drawn = world.gangs.pop("victim")
    for one in (drawn.gang, *drawn.pods):
        world.cluster.remove_pod("default", one.metadata.name)
    world.cluster.remove_gang("default", "victim")
    moved = [replace(one, metadata=replace(one.metadata, namespace=space)) for one in drawn.pods]
    about = replace(drawn.gang.metadata, namespace=space)
    world.cluster.set_gang(replace(drawn.gang, metadata=about))
    world.cluster.set_pod(replace(moved[0], spec=replace(moved[0].spec, node_name="a")))
    world.submit("winner: 2x8", "", "high")
    decider = Decider(world.cluster)
    (eviction,) = decider.decide(world.now).evictions
    told = eviction.told(space)
    said = explain(world.cluster, world.cluster.workloads[WorkloadKey("Gang", "default", "winner")])
    own = space == "default"
    assert ("winner" in told, "of another namespace, priority 10" in told) == (own, not own)
    assert ("gang victim (1 pod)" in said.message) == own
    assert ("place of other namespaces (1 pod)" in said.message) != own


def test_a_place_free_first_elsewhere_is_taken_after_a_second():
    world = Running.on("s/l: a:8 b:8-8")
    world.graceful = True
    world.run("x: 1x8", priority="low")
    world.run("z: 1x8", priority="high")
    world.cluster.remove_pod("default", "hold-b")
    world.settle()
    assert world.places("z") == {}, "those who leave are quick as a rule"
    world.now += VICTIM_SECONDS
    world.settle()
    assert world.places("z") == {"z-0": "b"}
    assert len(world.cluster.nominations) == 0


def test_nobody_goes_for_whom_those_that_leave_anyway_make_room():
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 1x8")
    world.run("y: 1x8", priority="low")
    world._leave("x-0")
    world.run("z: 1x8", priority="high")
    assert world.evicted == []


@pytest.mark.parametrize("lost", ["node", "gang"])
def test_a_place_that_cannot_come_about_is_kept_no_longer(lost: str):
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 1x8", priority="low")
    world.run("y: 1x8", priority="top")
    world.run("z: 1x8", priority="high")
    assert len(world.cluster.nominations) == 1
    if lost == "node":
        world.cluster.remove_node("a")
    else:
        world.end("z")
    world.settle()
    assert len(world.cluster.nominations) == 0
    assert world.cluster.table.held.sum() == 0


def test_a_node_that_returns_in_another_row_stays_reserved():
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 2x8", priority="low")
    world.run("z: 2x8", priority="high")
    for name in "ab":
        world.cluster.remove_node(name)
    for name in "ba":
        world.cluster.set_node(node(name, labels={"spine": "s", "leaf": "l"}))
    world.settle()
    held = {
        world.cluster.table.name(int(row)): int(world.cluster.table.held[3, row])
        for row in world.cluster.table.held[3].nonzero()[0]
    }
    assert held in ({"a": 8, "b": 8}, {})
    world.end("x")
    world.settle()
    assert len(world.places("z")) == 2


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_new_leader_continues_what_the_last_one_began(gone: int):
    """Crashed after noting the place down, and after ending so many of the victims."""
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 1x8", priority="low")
    world.run("y: 1x8", priority="low")
    world.submit("z: 2x8", priority="high")
    shown = world.gangs["z"].gang
    nominated = {"z-0": "a", "z-1": "b"}
    shown = replace(shown, status=replace(shown.status, nominated=nominated))
    world.cluster.remove_gang("default", "z")
    world.cluster.set_gang(shown)
    for name in ["x", "y"][:gone]:
        world._leave(f"{name}-0")
    world.decider = Decider(world.cluster)
    world.settle()
    assert sorted(world.evicted) == ["x", "y"][gone:]
    for name in ("x", "y"):
        world.end(name)
    world.settle()
    assert set(world.places("z").values()) == {"a", "b"}


def test_single_pods_preempt_and_are_preempted():
    world = Running.on("s/l: a:8")
    bound = pod("p", gpus=8, on="a", held="0,1,2,3,4,5,6,7", priority=1, phase="Running")
    world.cluster.set_pod(bound)
    world.cluster.set_pod(pod("q", gpus=4, priority=5))
    (eviction,) = world.decider.decide(0.0).evictions
    assert (eviction.workload, eviction.nodes) == (WorkloadKey("Pod", "default", "q"), {"q": "a"})
    assert [m.name for m in eviction.victims] == ["p"]
    world.cluster.remove_pod("default", "p")
    (placement,) = world.decider.decide(1.0).placements
    assert placement.assignments[0].spot.node == "a"


@pytest.mark.parametrize("alone", [True, False], ids=["a pod", "a gang"])
def test_gangs_placed_before_a_leader_began_may_rank_below_unprioritised(
    alone: bool,
):
    world = Running.on("s/l: a:8")
    label = "" if alone else "low"
    held = {"on": "a", "held": "0,1,2,3,4,5,6,7", "phase": "Running"}
    if not alone:
        world.cluster.set_gang(gang("low", minMember=1, priorityClassName="low"))
    world.cluster.set_pod(pod("p", gpus=8, gang=label, priority=-5 if alone else 0, **held))
    world.decider.decide(0.0)
    world.cluster.set_pod(pod("q", gpus=4))
    (eviction,) = world.decider.decide(1.0).evictions
    assert [m.name for m in eviction.victims] == ["p"]


def test_a_class_that_never_preempts():
    world = Running.on("s/l: a:8")
    polite = PriorityClass(metadata=ObjectMeta(name="polite"), value=50, preemption_policy="Never")
    world.cluster.set_priority_class(polite)
    world.run("x: 1x8", priority="low")
    world.run("z: 1x8", priority="polite")
    assert world.evicted == []


def test_a_gang_that_may_not_preempt_represents_no_similar_ones():
    world = Running.on(TWO)
    polite = PriorityClass(metadata=ObjectMeta(name="polite"), value=10, preemption_policy="Never")
    world.cluster.set_priority_class(polite)
    world.run("x: 2x8", priority="low")
    world.run("z: 2x8", priority="polite")
    assert world.there() == {"x"}
    world.run("y: 2x8", priority="high")
    assert world.there() == {"y"}


def test_gangs_with_running_bindings_are_asked_after_these_end():
    world = Running.on("s/l: a:8")
    world.submit("x: 1x8", priority="low")
    (placement,) = world.decider.decide(world.now).placements
    world.submit("z: 1x8", priority="high")
    assert world.decider.decide(world.now).evictions == []
    world._bind(world._pod("x-0"), "a", placement.assignments[0].spot.gpus)
    assert len(world.decider.decide(world.now).evictions) == 1
