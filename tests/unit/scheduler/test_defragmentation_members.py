"""Members of elastic gangs that move by themselves, while the others stay and go on."""

from __future__ import annotations

import pytest
from tests.support.defragmentation_scene import new_leader, statuses
from tests.support.defragmented import (
    RESTART,
    SAVED,
    THREE,
    There,
    ask,
    key,
    pods_moved,
    proposed,
    standing,
    steps,
)
from tests.support.running import Running

from lockstep.api.timestamp import show
from lockstep.scheduler.core.defrag.planner import MovePlan
from lockstep.scheduler.core.model.workload import WorkloadKey

FULL = {"x: 1x4": ("a", None), "v: 1x4": ("b", None)}
ELASTIC: There = {**FULL, "y: 1..2x4": ("b c", None)}
"""y-0 stands on b, beside v; y-1 on c, alone; on a there is room beside x."""

CASES: dict[str, tuple[str, There, str, dict[str, int]]] = {
    # name: cluster, what runs, who waits, how many pods of whom move
    "the member above the minimum moves, and not the gang": (THREE, ELASTIC, "w: 1x8", {"y": 1}),
    "not one that the gang needs": (
        THREE,
        {**FULL, "y: 2x4": ("b c", 5)},
        "w: 1x8",
        {"y": 2},
    ),
    "members of one gang move together": (
        "s/x: a:8 b:8 c:8 d:8",
        {"x: 1x6": ("a", None), "v: 1x6": ("b", None), "y: 1..3x2": ("a c d", None)},
        "w: 2x7",
        {},
    ),
    "two members of one gang": (
        "s/x: a:8 b:8 c:8 d:8",
        {"x: 1x4": ("a", None), "v: 1x4": ("b", None), "y: 1..3x2": ("a c d", None)},
        "w: 2x8",
        {"y": 2},
    ),
    "a gang that has just saved its work rather than members of a large one": (
        "s/x: a:8 b:8 c:8 d:8",
        {"x: 1x4": ("a", None), "y: 1..3x4": ("b b c", None), "z: 1x2": ("d", 0)},
        "w: 1x8",
        {"z": 1},
    ),
    "a spare moves rather than a gang that has just saved its work": (
        "s/x: a:8 b:8 c:8 d:8",
        {"x: 1x4": ("a", None), "y: 2..3x4^1": ("b b c", None), "z: 1x2": ("d", 0)},
        "w: 1x8",
        {"y": 1},
    ),
    "to another leaf": (
        "s/x: a:8 b:8\n s/y: c:8",
        {"x: 1x4": ("a", None), "v: 1x4": ("c", None), "y: 1..2x4": ("a b", None)},
        "w: 1x8",
        {"y": 1},
    ),
    "not out of the leaf that the gang requires": (
        "s/x: a:8 b:8\n s/y: c:8",
        {"x: 1x4": ("a", None), "v: 1x4": ("c", None), "y: 1..2x4 leaf": ("a b", None)},
        "w: 1x8",
        {},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_how_many_pods_of_whom_move(case: tuple[str, There, str, dict[str, int]]) -> None:
    drawing, there, waits, moved = case
    assert pods_moved(drawing, there, waits) == moved


def test_the_price_is_a_restart_of_the_whole_gang_once() -> None:
    world = standing(*CASES["two members of one gang"][:2])
    plan = proposed(world, world.submit("w: 2x8"))
    assert isinstance(plan, MovePlan)
    assert plan.price == RESTART * 6


def test_a_gang_of_ranks_moves_whole_or_not_at_all() -> None:
    world = standing(THREE, FULL)
    name = world.submit("y: 1..2x4", parallelism={"data": 2}, annotations={SAVED: show(world.now)})
    world.stand(name, ["b", "c"])
    world.settle()
    plan = proposed(world, world.submit("w: 1x8"))
    assert isinstance(plan, MovePlan)
    assert [len(move.mover.members) for move in plan.moves] == [2]


def moving() -> Running:
    """Return a cluster in which y-1 has been told to go from c to a, and takes its time."""
    world = standing(THREE, ELASTIC)
    world.graceful = True
    world.run("w: 1x8")
    ask(world, "w", "1h")
    world.settle()
    assert world.evicted == ["y"]
    assert world.cluster.pods["default", "y-1"].terminating
    return world


@pytest.mark.parametrize("leaders", range(4))
def test_the_others_stay_while_it_moves(leaders: int) -> None:
    """A new leader begins before each step, up to some step."""
    world = moving()
    stays = world.cluster.pods["default", "y-0"].uid

    def led(step: int) -> None:
        if step < leaders:
            new_leader(world, THREE, statuses(world))
        world.settle()

    led(0)
    world.cluster.remove_pod("default", "y-1")
    led(1)
    assert steps(world) == ("Moving", ["Returning"])
    world.run("u: 1x4")
    assert "u" not in world.there(), "the new place is kept"
    world.renew("y-1")
    led(2)
    assert world.there() == set("vwxy")
    assert world.places("y") == {"y-0": "b", "y-1": "a"}
    assert world.cluster.pods["default", "y-0"].uid == stays
    assert world.places("w") == {"w-0": "c"}
    led(3)
    shown = world.cluster.defragmentations.get(key("w"))
    if shown is not None:  # else it was over before the last leader came
        assert steps(world) == ("Done", ["Standing"])
    assert not len(world.cluster.nominations)


def test_a_leader_that_finds_all_in_place_looks_again() -> None:
    world = moving()
    world.cluster.remove_pod("default", "y-1")
    world.settle()
    world.renew("y-1")
    shown = statuses(world)
    world.settle()
    assert steps(world) == ("Done", ["Standing"])
    new_leader(world, THREE, shown)  # the last one has ended before it said so
    result = world.step()
    assert result.wake_at == world.now, "nothing else may happen that would have it look"
    world.step()
    assert steps(world) == ("Done", ["Standing"])


def test_a_mover_that_lost_its_place_queues_while_gangs_continue() -> None:
    world = moving()
    world.cluster.remove_node("a")
    world.renew("y-1")
    notes = [note for _ in range(3) for note in world.step().notes]
    assert [(n.workload, n.reason) for n in notes if n.kind == "Warning"] == [
        (key("y"), "PlaceLost")
    ]
    assert steps(world) == ("Done", ["Waiting"])
    assert world.places("y") == {"y-0": "b"}
    assert world.places("w") == {"w-0": "c"}
    assert WorkloadKey("Gang", "default", "y") in world.decider.pending_queue


def test_an_early_returner_waits_for_its_reserved_place() -> None:
    leaves = "s/x: a:8 b:8\n s/y: c:8"
    there: There = {
        "y: 1..2x4 leaf": ("a b", None),
        "z: 1x4": ("a", 10),  # where y-1 goes; it goes to c itself
        "v: 1x4": ("c", None),
    }
    world = standing(leaves, there)
    world.graceful = True
    world.run("w: 1x8")
    ask(world, "w", "1h")
    world.settle()
    assert sorted(world.evicted) == ["y", "z"]
    world.renew("y-1")
    world.settle()
    assert steps(world) == ("Moving", ["Returning", "Leaving"])
    assert world.places("w") == {"w-0": "b"}
    world.renew("z-0")
    world.settle()
    assert world.places("y") == {"y-0": "a", "y-1": "a"}
    assert world.places("z") == {"z-0": "c"}
    assert steps(world) == ("Done", ["Standing", "Standing"])
