"""Moving gangs so that a waiting one fits: who moves, where everybody then stands, who must not."""

from __future__ import annotations

import pytest
from tests.support.defragmented import (
    LATER,
    RESTART,
    THREE,
    There,
    ask,
    key,
    proposed,
    standing,
    steps,
)
from tests.support.running import Running

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.wire import convert
from lockstep.scheduler.core.defrag.defragmenter import RETURN_SECONDS
from lockstep.scheduler.core.defrag.planner import MovePlan

CASES: dict[str, tuple[str, There, str, str]] = {
    # name: cluster, what runs, who waits, who moves (empty: nobody may or has to)
    "one move is enough, the cheapest": (
        THREE,
        {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)},
        "w: 1x8",
        "x",
    ),
    "the cheapest that make room move together": (
        THREE,
        {"x: 1x2": ("a", 90), "y: 1x2": ("b", 50), "z: 1x2": ("c", 10)},
        "w: 2x8",
        "yz",
    ),
    "a large gang moves rather than a small one that costs more": (
        "s/x: a:8 b:8 c:8 d:8",
        {"x: 2x4": ("a b", 1), "y: 1x4": ("c", 200), "z: 1x4": ("d", 200)},
        "w: 1x8",
        "x",
    ),
    "who does not say that it saves its work stays": (
        THREE,
        {"x: 1x4": ("a", None), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)},
        "w: 1x8",
        "y",
    ),
    "who is elastic may move": (
        THREE,
        {"x: 1x4": ("a", None), "y: 1..2x4": ("b c", None), "z: 1x4": ("c", None)},
        "w: 1x8",
        "y",
    ),
    "nobody moves where that does not help": (
        THREE,
        {"x: 1x6": ("a", 10), "y: 1x6": ("b", 20), "z: 1x6": ("c", 30)},
        "w: 2x8",
        "",
    ),
    "nobody moves for what fits already": (THREE, {"x: 1x4": ("a", 10)}, "w: 1x2", ""),
    "a topology wish of the waiting one": (
        "s/x: a:8 b:8\n s/y: c:8 d:8",
        {"x: 1x2": ("a", 50), "y: 1x2": ("c", 10)},
        "w: 2x8 leaf",
        "y",
    ),
    "a topology wish of one that moves": (
        "s/x: a:8 b:8\n s/y: c:8-4 d:8-6",
        {"x: 2x4 leaf": ("a b", 50)},
        "w: 2x8 leaf",
        "",
    ),
    "the more important does not move": (
        THREE,
        {"x: 1x4 in q high": ("a", 10), "y: 1x4 in q": ("b", 20), "z: 1x4 in q": ("c", 30)},
        "w: 1x8",
        "y",
    ),
    "a chain: one moves to where another was": (
        "s/x: a:8 b:8\n s/y: c:8 d:8",
        {"x: 1x4 leaf": ("a", 10), "y: 1x4 leaf": ("b", 50), "z: 2x8 leaf": ("c d", None)},
        "w: 1x8",
        "x",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_cheapest_move_that_can(case: tuple[str, There, str, str]) -> None:
    drawing, there, waits, moved = case
    world = standing(drawing, there)
    name = world.submit(waits)
    before = world.cluster.table.free.copy()
    plan = proposed(world, name)
    names = "" if isinstance(plan, str) else "".join(sorted(m.mover.key.name for m in plan.moves))
    assert names == moved
    assert (world.cluster.table.free == before).all(), "a proposal changes nothing"


def test_the_price_is_the_unsaved_work_and_a_restart() -> None:
    world = standing(THREE, {"x: 2x2": ("a b", 40), "y: 1x2": ("c", 70)})
    plan = proposed(world, world.submit("w: 2x8"))
    assert isinstance(plan, MovePlan)
    gone = {m.mover.key.name: m.mover.price for m in plan.moves}
    assert gone == {"x": (41 + RESTART) * 4} or gone == {"y": (71 + RESTART) * 2}
    assert plan.price == sum(gone.values())


def test_a_gang_that_promises_saving_moves_at_the_promised_price() -> None:
    world = standing(THREE, {"y: 1x4": ("b", 700), "z: 1x4": ("c", 800)})
    name = world.submit("x: 1x4", checkpoint={"interval": "10m"})
    world.stand(name, ["a"])
    world.now = LATER + 1000
    plan = proposed(world, world.submit("w: 1x8"))
    assert isinstance(plan, MovePlan)
    assert [move.mover.key.name for move in plan.moves] == ["x"]
    assert plan.price == (600 + RESTART) * 4


def test_asked_for_it_is_carried_out_and_everybody_stands() -> None:
    world = standing(THREE, {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)})
    world.run("w: 1x8")
    assert world.there() == set("xyz")
    ask(world, "w", "1h")
    world.settle()
    assert world.there() == set("wxyz")
    assert world.evicted == ["x"]
    shown = world.cluster.defragmentations[key("w")]
    assert (shown.phase, shown.price) == ("Done", (11 + RESTART) * 4)
    assert [move.phase for move in shown.moves] == ["Standing"]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("1s", "the price is now 8m44s of one GPU, and 1s of one GPU was agreed to"),
        ("soon", "is not a duration"),
    ],
)
def test_it_is_refused_with_words(request_: str, why: str) -> None:
    world = standing(THREE, {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)})
    world.run("w: 1x8")
    ask(world, "w", request_)
    world.settle()
    shown = world.cluster.defragmentations[key("w")]
    assert shown.phase == "Refused"
    assert why in shown.message
    assert world.evicted == []
    ask(world, "w", "1h")
    world.settle()
    assert world.there() == set("wxyz"), "another request is another answer"


def test_a_request_is_answered_once() -> None:
    world = standing(THREE, {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)})
    world.run("w: 1x8")
    ask(world, "w", "1h")
    world.settle()
    world.end("w", again=True)
    world.run("v: 1x8", priority="high")  # takes the room that it left
    world.settle()
    assert world.evicted == ["x"]
    assert "w" not in world.there()


QUEUES = {"q": {"guaranteed": {"nvidia.com/gpu": 8}}, "r": {"guaranteed": {"nvidia.com/gpu": 16}}}


@pytest.mark.parametrize(
    ("waits", "moved"),
    [
        pytest.param("w: 1x8 in q", "a", id="within its guarantee it moves those within theirs"),
        pytest.param("w: 1x8 in t", "c", id="beyond it only those beyond theirs"),
    ],
)
def test_a_guarantee_protects_from_those_who_borrow(waits: str, moved: str) -> None:
    there: There = {
        "a: 1x4 in r": ("a", 10),
        "b: 1x4 in r": ("b", 20),
        "c: 1x4 in t": ("c", 30),
    }
    world = standing(THREE, there, {**QUEUES, "t": {}})
    text, _, queue = waits.partition(" in ")
    plan = proposed(world, world.submit(text, queue))
    assert isinstance(plan, MovePlan)
    assert [move.mover.key.name for move in plan.moves] == [moved]


def test_nobody_moves_whom_a_budget_protects() -> None:
    world = standing(THREE, {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)})
    spec = {"selector": {"matchLabels": {"lockstep.dev/gang": "x"}}}
    body = {"metadata": {"name": "b", "namespace": "default"}, "spec": spec}
    world.cluster.budgets.set(convert(body, PodDisruptionBudget))
    plan = proposed(world, world.submit("w: 1x8"))
    assert isinstance(plan, MovePlan)
    assert [move.mover.key.name for move in plan.moves] == ["y"]


@pytest.mark.parametrize(("waited", "moved"), [(3000, True), (3700, False)])
def test_nothing_moves_for_a_gang_that_gives_up(waited: int, moved: bool) -> None:
    world = standing(THREE, {"x: 1x4": ("a", 10), "y: 1x4": ("b", 20), "z: 1x4": ("c", 30)})
    world.run("w: 1x8", maxWait="1h")
    world.now += waited
    ask(world, "w", "100h")
    world.settle()
    assert bool(world.rearranged) == moved
    assert (key("w") in world.decider.broken) != moved


TIGHT: There = {
    "x: 1x4": ("a", 10),
    "y: 1x4": ("b", None),
    "v: 1x4": ("b", None),
    "z: 1x4": ("c", 90),
}


def on_the_way() -> Running:
    """Return a cluster in which x has been told to go from a to c, for w, and takes its time."""
    world = standing(THREE, TIGHT)
    world.graceful = True
    world.run("w: 1x8")
    ask(world, "w", "1h")
    world.settle()
    assert world.evicted == ["x"]
    return world


def test_nobody_else_gets_the_places_that_are_kept() -> None:
    world = on_the_way()
    world.run("u: 1x4")
    world.cluster.remove_pod("default", "x-0")
    world.settle()
    assert world.there() == set("vwyz"), "u would fit where x goes, and where w does"
    world.renew("x-0")
    world.settle()
    assert world.there() == set("vwxyz")
    assert steps(world) == ("Done", ["Standing"])


def test_a_mover_that_lost_its_place_queues_and_says_so() -> None:
    world = on_the_way()
    world.cluster.remove_node("c")
    world.renew("x-0")
    notes = world.step().notes + world.step().notes + world.step().notes
    assert [(n.workload, n.reason) for n in notes if n.kind == "Warning"] == [
        (key("x"), "PlaceLost")
    ]
    assert steps(world) == ("Done", ["Waiting"])
    assert world.why("x")[0] == "NotEnoughRoom"


def test_a_place_of_pods_that_never_return_is_given_up() -> None:
    world = on_the_way()
    world.cluster.remove_pod("default", "x-0")
    world.settle()
    assert steps(world) == ("Moving", ["Returning"])
    world.now += RETURN_SECONDS - 1
    world.settle()
    assert key("x") in world.cluster.nominations
    world.now += 1
    world.settle()
    assert steps(world) == ("Done", ["Waiting"])
    assert not len(world.cluster.nominations)


def test_one_that_finds_a_place_before_anybody_went_moves_nobody() -> None:
    world = standing(THREE, TIGHT)
    world.run("w: 1x8")
    ask(world, "w", "1h")
    world.decider.decide(world.now)  # nobody is told yet
    world.end("y")
    world.end("v")
    world.settle()
    assert world.evicted == []
    assert steps(world) == ("Done", ["Stayed"])
    assert world.there() == set("wxz")


def test_a_more_important_gang_does_not_take_a_movers_place() -> None:
    world = on_the_way()
    world.run("t: 1x4", priority="high")
    others = world.evicted[1:]
    assert len(others) == 1, "it takes the place of somebody who stands"
    world.renew("x-0")
    world.renew(f"{others[0]}-0")
    world.settle()
    assert {"t", "x", "w"} <= world.there()
    assert steps(world) == ("Done", ["Standing"])
