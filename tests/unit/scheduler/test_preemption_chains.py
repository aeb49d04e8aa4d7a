"""Plans are priced to their end: no other first choice of victims would have cost less."""

from __future__ import annotations

import pytest
from tests.support.priced import Outcome, Scene, There, drawn
from tests.support.running import Running

SAMPLE, MANY = 60, 1000
LOW = There((0,), 1, 2, "low", True, 1)


def differing(seeds: range) -> dict[int, tuple[Outcome, Outcome | None]]:
    found = {}
    for seed in seeds:
        scene = drawn(seed)
        outcome = scene.outcome()
        if outcome is not None and outcome != (best := scene.best()):
            found[seed] = outcome, best
    return found


def test_the_cheapest_chain_is_taken_as_brute_force_finds_it():
    assert differing(range(SAMPLE)) == {}


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, MANY, 100))
def test_many_chains_are_those_that_brute_force_finds(first):
    assert differing(range(first, first + 100)) == {}


def test_two_small_gangs_go_where_a_large_one_evicts():
    big = There((1,), 1, 4, "", True, 1)
    outcome = Scene((4, 4), (LOW, LOW, big), 1, 1, 4).outcome()
    assert outcome is not None
    assert (outcome.broken, outcome.gangs) == (1, 2)


def test_a_gang_that_never_preempts_stays_before_less_important_ones():
    world = Running.on("s/l: a:4 b:4")
    world.run("old: 1x4", priority="low")
    world.now += 3600
    world.run("young: 1x4")
    world.run("boss: 1x4", priority="top")
    assert world.there() == {"young", "boss"}


def test_what_is_supposed_of_chains_leaves_the_accounts_alone():
    world = Running.on("s/l: a:4 b:4")
    for name in ("x", "y"):
        world.run(f"{name}: 1x4", priority="low")
    account = world.cluster.ledger.account("default")
    before = dict(account.used), {k: list(v) for k, v in account.holding.items()}
    world.run("z: 1x4")
    world.end("z")
    world.settle()
    assert ({k: v for k, v in account.used.items() if v}) == before[0]
    assert account.holding.keys() == before[1].keys()
