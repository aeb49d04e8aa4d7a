"""No gang goes that need not, and no budget is violated where a clean set of victims exists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.running import PRIORITIES, Running

from lockstep.api.core import PodDisruptionBudget
from lockstep.api.wire import convert

SIZE = 4
"""GPUs of a node."""


class Stands(NamedTuple):
    """A gang: by pod its node, and how many GPUs each has."""

    nodes: tuple[int, ...]
    gpus: int
    priority: str
    protected: bool = False


@dataclass(frozen=True)
class Scene:
    """What stands, what a budget allows of the protected, and what comes: pods x GPUs."""

    nodes: int
    there: tuple[Stands, ...]
    allowed: int
    pods: int
    gpus: int

    def fits(self, gone: Iterable[int]) -> bool:
        """Return whether what comes has room once these have gone."""
        left, free = set(gone), [SIZE] * self.nodes
        for number, one in enumerate(self.there):
            for node in one.nodes if number not in left else ():
                free[node] -= one.gpus
        return sum(room // self.gpus for room in free) >= self.pods

    def clean(self, gone: Iterable[int]) -> bool:
        """Return whether the budget allows these to go."""
        asked = sum(len(self.there[n].nodes) for n in gone if self.there[n].protected)
        return asked <= self.allowed

    def ends(self, gone: Iterable[int]) -> bool:
        """Return whether none of these can take the place of others in turn."""
        least = min(PRIORITIES.get(one.priority, 0) for one in self.there)
        return all(PRIORITIES.get(self.there[n].priority, 0) == least for n in gone)

    def victims(self) -> set[int]:
        """Return who goes, by number, for what comes."""
        world = Running.on("s/l: " + " ".join(f"n{n}:{SIZE}" for n in range(self.nodes)))
        names = [f"g{number}" for number, one in enumerate(self.there) if one.protected]
        expression = {"key": "lockstep.dev/gang", "operator": "In", "values": names or ["none"]}
        budget = {
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"selector": {"matchExpressions": [expression]}},
            "status": {"disruptionsAllowed": self.allowed},
        }
        world.cluster.budgets.set(convert(budget, PodDisruptionBudget))
        for number, one in enumerate(self.there):
            world.submit(f"g{number}: {len(one.nodes)}x{one.gpus}", priority=one.priority)
            world.stand(f"g{number}", [f"n{node}" for node in one.nodes])
        world.decider.decide(world.now)
        world.submit(f"boss: {self.pods}x{self.gpus}", priority="top")
        world.graceful = True
        world.settle()
        return {int(name[1:]) for name in world.evicted}


def check(scene: Scene) -> None:
    gone = scene.victims()
    if scene.fits(()) or not scene.fits(range(len(scene.there))):
        assert gone == set()
        return
    assert scene.fits(gone)
    for number in gone:
        assert not scene.fits(gone - {number}), f"{number} of {gone} need not go"
    numbers = range(len(scene.there))
    sets = (set(one) for many in numbers for one in combinations(numbers, many + 1))
    if any(scene.fits(one) and scene.clean(one) and scene.ends(one) for one in sets):
        assert scene.clean(gone), f"{gone} violate the budget"


TWO_OR_ONE = (Stands((0,), 2, "low", True), Stands((0,), 2, "low", True))
CASES = {
    "one whole node and a half that is free": Scene(
        2, (Stands((0,), 2, ""), Stands((1,), 4, "")), 0, 3, 2
    ),
    "the same with the nodes the other way round": Scene(
        2, (Stands((1,), 2, ""), Stands((0,), 4, "")), 0, 3, 2
    ),
    "a small one beside room enough": Scene(
        2, (Stands((1,), 4, "low"), Stands((0,), 1, "low")), 0, 3, 2
    ),
    "one dearer pod instead of two that a budget protects": Scene(
        2, (*TWO_OR_ONE, Stands((1,), 4, "low", True)), 1, 1, 4
    ),
    "two of which one may go, and one that is free to go": Scene(
        2, (*TWO_OR_ONE, Stands((1,), 4, "high")), 1, 1, 4
    ),
    "the budget is violated where nothing else makes room": Scene(2, TWO_OR_ONE, 1, 2, 4),
}


@pytest.mark.parametrize("scene", CASES.values(), ids=CASES)
def test_who_goes(scene: Scene):
    check(scene)


def test_a_budget_is_violated_now_where_it_would_be_later():
    # The gang of 4 is within the budget, but would take the place of both others.
    dearer = Stands((1,), 4, "", True)
    assert Scene(2, (*TWO_OR_ONE, dearer), 1, 1, 4).victims() == {0, 1}


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    nodes = draw(st.integers(2, 4))
    free = [SIZE] * nodes
    there = []
    for _ in range(draw(st.integers(1, 6))):
        gpus = draw(st.sampled_from([1, 2, 2, 4]))
        open_to = [node for node in range(nodes) if free[node] >= gpus]
        if not open_to:
            continue
        on = draw(st.lists(st.sampled_from(open_to), min_size=1, max_size=2, unique=True))
        for node in on:
            free[node] -= gpus
        priority = draw(st.sampled_from(["low", "", "high"]))
        there.append(Stands(tuple(on), gpus, priority, draw(st.booleans())))
    pods, gpus = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4]))
    return Scene(nodes, tuple(there), draw(st.integers(0, 3)), pods, gpus)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(scenes())
@example(CASES["a small one beside room enough"])
def test_no_victim_is_needless_and_no_budget_violated_in_vain(scene: Scene):
    check(scene)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@settings(max_examples=examples(4000), deadline=None)
@given(scenes())
def test_many_victims_are_needed_and_clean(scene: Scene):
    check(scene)
