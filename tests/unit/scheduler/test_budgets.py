"""Whom a PodDisruptionBudget protects goes last, and not in silence."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.running import Running

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.wire import convert

TWO = "s/l: a:8 b:8"
FOUR = "s/l: a:8 b:8 c:8 d:8"


def budget(
    allowed: int, *gangs: str, namespace: str = "default", **spec: int | str
) -> PodDisruptionBudget:
    expression = {"key": "lockstep.dev/gang", "operator": "In", "values": list(gangs)}
    return convert(
        {
            "metadata": {"name": "keep", "namespace": namespace},
            "spec": {"selector": {"matchExpressions": [expression]}, **spec},
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )


# what runs, the cheapest to lose last; who is protected, how many may go; who comes, who goes
CASES: dict[str, Any] = {
    "the protected is spared, though it is cheaper": (
        TWO, ["y: 1x8", "x: 1x8"], (0, "x"), "z: 1x8", "y",
    ),
    "as many as the budget allows may go": (TWO, ["y: 1x8", "x: 1x8"], (1, "x"), "z: 1x8", "x"),
    "a gang has more pods than the budget allows to go": (
        FOUR, ["y: 2x8", "x: 2x8"], (1, "x"), "z: 1x8", "y",
    ),
    "of two under one budget that allows one, one goes": (
        FOUR, ["y: 2x8", "w: 1x8", "x: 1x8"], (1, "w", "x"), "z: 1x8", "x",
    ),
    "where nothing else makes room it goes": (TWO, ["x: 2x8"], (0, "x"), "z: 1x8", "x"),
    "an elastic gang whose extras are protected goes after the others": (
        FOUR, ["y: 1x8", "x: 1..3x8"], (0, "x"), "z: 1x8", "y",
    ),
    "a budget of another namespace is another's": (
        TWO, ["y: 1x8", "x: 1x8"], (0, "x", "elsewhere"), "z: 1x8", "x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_goes(case):
    drawing, runs, (allowed, *protected), comes, gone = case
    world = Running.on(drawing)
    elsewhere = "elsewhere" in protected
    namespace = "elsewhere" if elsewhere else "default"
    world.cluster.budgets.set(budget(allowed, *protected, namespace=namespace))
    for text in runs:
        world.run(text)
    world.run(comes, priority="high")
    assert sorted(set(world.evicted)) == sorted(gone)
    assert "z" in world.there()


def test_what_is_violated_is_said():
    world = Running.on(TWO)
    world.graceful = True
    world.cluster.budgets.set(budget(0, "x"))
    world.run("x: 2x8", priority="low")
    world.submit("z: 1x8", priority="high")
    (eviction,) = world.step().evictions
    words = "that violates the PodDisruptionBudget keep, and nothing else makes room"
    assert eviction.message.endswith(words)
    assert world.why("z")[1].endswith(words)


def test_a_budget_that_is_gone_protects_nobody():
    world = Running.on(TWO)
    world.cluster.budgets.set(budget(0, "x"))
    world.cluster.budgets.remove("default", "keep")
    world.run("x: 1x8", priority="low")
    world.run("y: 1x8")
    world.run("z: 1x8", priority="high")
    assert world.evicted == ["x"]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 1),
        ({"minAvailable": 5}, 0),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": 2}, 1),
        ({"maxUnavailable": "26%"}, 1),
        ({"maxUnavailable": 9}, 3),
        ({"maxUnavailable": 1}, 0),
        ({}, 7),
        ({"minAvailable": "many"}, 7),
    ],
    ids=str,
)
def test_it_is_counted_who_stands_where_time_is_played(spec: dict[str, Any], allowed: int):
    world = Running.on("s/l: a:8 b:8 c:8")
    for name in ("x", "y", "z", "w"):
        world.run(f"{name}: 1x8")
    found = budget(7, "x", "y", "z", "w", **spec)
    world.cluster.budgets.set(found)
    world.cluster.budgets.set(budget(7, "x", namespace="elsewhere", **spec))
    (asked,) = world.cluster.budgets.asked(world.cluster.pods.values())
    assert world.cluster.budgets.allowed(asked) == 7, "as its status says"
    world.cluster.budgets.follow(world.cluster.pods)
    assert world.cluster.budgets.allowed(asked) == allowed


def test_each_of_two_moments_spends_the_budget_left_then():
    world = Running.on("s/l: a:8 b:8 c:8")
    world.run("y: 1x8")
    for name in ("x", "w"):
        world.run(f"{name}: 1x8")
    world.cluster.budgets.set(budget(1, "x", "w", maxUnavailable=1))
    world.cluster.budgets.follow(world.cluster.pods)
    world.run("one: 1x8", priority="high")
    world.run("two: 1x8", priority="high")
    assert world.evicted == ["w", "y"], "w waits, so that x may not go as well"
