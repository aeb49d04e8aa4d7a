"""What holds for queues, preemption and reclaim, over random trees, gangs and orders of events."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.queue_properties import (
    GPU,
    NODES,
    End,
    Submit,
    check_state,
    rank,
    stories,
    used,
)
from tests.support.running import Running

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.quota.account import Account


def play(
    queues: dict[str, dict[str, Any]], events: list[Submit | End], world: Running | None = None
) -> Running:
    world = world or Running.on(NODES, queues)
    for event in events:
        if isinstance(event, Submit):
            world.submit(event.text, event.queue, event.priority)
        elif world.gangs:
            names = sorted(world.gangs)
            world.end(names[event.which % len(names)])
        climb(world, queues)
        check_state(world, queues)
    return world


def climb(world: Running, queues: dict[str, dict[str, Any]]) -> None:
    """Decide until nothing changes; each step raises the rank, so this comes to an end."""
    last, plans = rank(world, queues), 0
    for _ in range(60):
        before = used(world, queues)
        result = world.step()
        for eviction in result.evictions:
            check_victims(
                world, queues, eviction.workload, {m.workload for m in eviction.victims}, before
            )
        plans += len(result.evictions)
        if not len(world.cluster.nominations):
            now = rank(world, queues)
            assert now > last if plans else now >= last
            last, plans = now, 0
        if not (result.placements or result.evictions or result.more or world.cluster.touched):
            assert not len(world.cluster.nominations), "kept free and not taken"
            return
    raise AssertionError(f"no end: {world.evicted}")


def check_victims(
    world: Running,
    queues: dict[str, dict[str, Any]],
    winner: WorkloadKey,
    victims: set[WorkloadKey | None],
    before: Counter[str],
) -> None:
    mine, around = world.cluster.workloads[winner].queue, set()
    above: str | None = mine
    while above:  # what is in a queue that has parts, but in none of them, has no share of its own
        around.add(above)
        above = queues[above].get("parent")
    for key in victims:
        assert key is not None
        theirs = world.cluster.workloads[key].queue
        if theirs not in around:
            over = before[theirs] > queues[theirs].get("guaranteed", {}).get(GPU, 0)
            assert over, f"{theirs} loses {key.name} though it is within its guaranteed amount"


@settings(max_examples=examples(120), deadline=None)
@given(stories())
def test_limits_guarantees_and_no_cycles(story):
    play(*story)


@settings(max_examples=examples(40), deadline=None)
@given(stories())
def test_the_same_story_has_the_same_end(story):
    first, second = play(*story), play(*story)
    assert first.evicted == second.evicted
    assert {name: first.places(name) for name in first.gangs} == {
        name: second.places(name) for name in second.gangs
    }


@settings(max_examples=examples(40), deadline=None)
@given(stories(), st.integers(0, 8))
def test_a_restart_anywhere_keeps_the_rules(story, when):
    queues, events = story
    world = play(queues, events[:when])
    world.decider = Decider(world.cluster)
    play(queues, events[when:], world)


def test_accounts_name_their_queues():
    world = Running.on(NODES, {"org": {}, "q": {"parent": "org"}})
    world.run("a: 1x4", "org")
    account = world.cluster.ledger.account("org")
    assert isinstance(account, Account)
    assert (account.name, account.queue) == ("org/", "org")
