"""The first of a queue that limits keep waiting has a time, and others do not delay it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.backfilled import at_most, runs
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.scheduler.core.reservations.book import FOLLOWING, SEARCHES
from lockstep.scheduler.core.reservations.reserved_nodes import end_of

AMPLE = "s/l: " + " ".join(f"n{number}:8" for number in range(12))
"""Room for all that the tests draw: what is lacking is quota."""
ALONE = {"q": at_most(16), "r": {}}
INSIDE = {"org": at_most(16), "q": {"parent": "org"}, "r": {"parent": "org"}, "t": {}}
Queues = dict[str, dict[str, Any]]


def busy(queues: Queues = ALONE, runtime: float | None = 600, size: int = 2) -> Running:
    """Of the limit of 16 GPUs 8 are used for so long; the gang ``big`` asks for so many nodes."""
    world = Running.on(AMPLE, queues)
    world.run("x: 1x8", "q", **runs(runtime))
    world.run(f"big: {size}x8", "q", **runs(100))
    return world


def promised(world: Running, queue: str = "q") -> tuple[str, float] | None:
    held = world.cluster.reservations.quota.get(queue)
    return (held.workload.name, held.at) if held is not None else None


@pytest.mark.parametrize(
    ("queues", "passer", "runtime", "passes"),
    [
        pytest.param(ALONE, "q", 300, True, id="given back in time"),
        pytest.param(ALONE, "q", 3000, False, id="it would delay the first"),
        pytest.param(ALONE, "q", None, False, id="nobody knows when it ends"),
        pytest.param(ALONE, "r", None, True, id="of another queue"),
        pytest.param(INSIDE, "r", None, False, id="of another queue under the same limit"),
        pytest.param(INSIDE, "r", 300, True, id="of another queue, given back in time"),
        pytest.param(INSIDE, "t", None, True, id="beside the limit"),
    ],
)
def test_who_passes(queues: Queues, passer: str, runtime: float | None, passes: bool):
    world = busy(queues)
    assert promised(world) == ("big", 1_000_601)
    world.run("small: 1x8", passer, **runs(runtime))
    assert ("small" in world.there()) == passes
    if not passes:
        reason, message = world.why("small")
        assert reason == "OverQuota"
        assert "8 GPUs kept for gang big until 1970-01-12T13:56:41Z from what may run" in message
    if runtime is not None and passes:
        world.now += runtime
        world.end("small")
    world.now = 1_000_601
    world.end("x")
    world.settle()
    assert "big" in world.there()
    assert promised(world) != ("big", 1_000_601)


def test_it_says_by_when_it_has_quota():
    message = busy().why("big")[1]
    assert "by the run times stated enough is given back by 1970-01-12T13:56:41Z" in message


def test_a_request_beyond_limits_gets_no_promise_and_blocks_none():
    world = busy(size=3)
    assert promised(world) is None
    world.run("next: 2x8", "q", **runs(100))
    assert promised(world) == ("next", 1_000_601)
    world.run("small: 1x8", "q", **runs(300))
    assert world.there() == {"x", "small"}


def test_where_no_time_can_be_told_everybody_passes():
    world = busy(runtime=None)
    assert promised(world) is None
    world.run("small: 1x8", "q")
    assert world.there() == {"x", "small"}


@pytest.mark.parametrize("event", ["gone", "raised", "lowered"])
def test_a_gang_no_longer_waiting_for_quota_reserves_nothing(event: str):
    world = busy()
    if event == "gone":
        world.end("big")
    else:
        spec = world.cluster.ledger.specs["q"]
        limit = {"nvidia.com/gpu": 24 if event == "raised" else 8}
        world.cluster.set_queue(replace(spec, spec=replace(spec.spec, limit=limit)))
    world.settle()
    assert promised(world) is None
    assert not any(any(kept.values()) for kept in world.cluster.ledger.reserved.values())
    assert ("big" in world.there()) == (event == "raised")


def test_who_finds_no_room_at_its_time_gets_another_time():
    world = Running.on("s/l: a:8 b:8", ALONE)
    world.run("x: 1x8", "q", **runs(600))
    world.run("y: 1x8", "r", **runs(900))
    world.run("first: 2x8", "r", **runs(50))
    assert world.cluster.reservations.room is not None
    world.run("big: 2x8", "q", **runs(100))
    at = promised(world)
    assert at is not None
    assert at[1] >= 1_000_902, "there is room when both have ended"
    world.run("small: 1xcpu4", "q")
    assert "small" in world.there(), "it asks for nothing that is limited"


def test_a_more_important_gang_goes_first_and_moves_the_estimate():
    world = busy()
    world.run("vip: 1x8", "q", "high", **runs(900))
    assert "vip" in world.there()
    assert promised(world) == ("big", 1_000_903)


def test_promises_under_one_limit_follow_one_another():
    queues = {"org": at_most(16), "q": {"parent": "org"}, "r": {"parent": "org"}}
    world = busy(queues)
    world.run("other: 2x8", "r", **runs(50))
    assert promised(world) == ("big", 1_000_601)
    assert promised(world, "r") == ("other", 1_000_702)
    world.now = 1_000_601
    world.end("x")
    world.settle()
    assert world.there() == {"big"}
    assert promised(world, "r") == ("other", 1_000_702)
    world.now = 1_000_702
    world.end("big")
    world.settle()
    assert world.there() == {"other"}


def test_few_promises_count_in_one_limit_at_a_time():
    names = [f"q{number}" for number in range(FOLLOWING + 2)]
    world = Running.on(AMPLE, {"org": at_most(8)} | {name: {"parent": "org"} for name in names})
    world.run("x: 1x8", "q0", **runs(600))
    for name in names:
        world.run(f"{name}: 1x8", name, **runs(50))
    assert len(world.cluster.reservations.quota) == FOLLOWING
    world.now = 1_000_600
    world.end("x")
    world.settle()
    assert world.there() == {"q0"}
    assert len(world.cluster.reservations.quota) == FOLLOWING
    assert promised(world, "q8") is not None, "its turn has come"


@pytest.mark.parametrize("runtime", [150, 350])
def test_nobody_starves_behind_a_stream_of_smaller_ones(runtime: int):
    world = busy()
    for number in range(12):
        world.run(f"s{number}: 1x8", "q", **runs(runtime))
        world.now += 99
        _end_due(world)
        world.settle()
        if "big" in world.there():
            return
    raise AssertionError("it has never started")


def _end_due(world: Running) -> None:
    for member in list(world.cluster.pods.values()):
        end = end_of(world.cluster, member) if member.node else None
        if end is not None and end <= world.now and member.workload is not None:
            world.end(member.workload.name)


PASSING = st.lists(
    st.tuples(
        st.integers(1, 8), st.sampled_from([None, 50, 400, 5000]), st.sampled_from(["q", "r", "t"])
    ),
    max_size=8,
)


@settings(max_examples=examples(60), deadline=None)
@given(PASSING, st.lists(st.integers(100, 900), min_size=1, max_size=2), st.booleans())
def test_passing_never_moves_the_time_of_the_first(passing, ends, inside):
    world = Running.on(AMPLE, INSIDE if inside else ALONE | {"t": {}})
    for number, seconds in enumerate(ends):
        world.run(f"x{number}: 1x8", "q", **runs(float(seconds)))
    world.run("big: 2x8", "q", **runs(100))
    told = promised(world)
    assert told is not None
    for number, (gpus, runtime, queue) in enumerate(passing):
        world.run(f"p{number}: 1x{gpus}", queue, **runs(runtime))
        assert promised(world) == told
    while "big" not in world.there():
        ends_at = [end_of(world.cluster, one) for one in world.cluster.pods.values() if one.node]
        world.now = max(world.now, min(end for end in ends_at if end is not None))
        assert world.now <= told[1], "it starts when its time has come, if all end as they said"
        _end_due(world)
        world.settle()


def test_who_is_put_off_is_looked_at_without_anything_happening():
    names = [f"q{number}" for number in range(SEARCHES + 1)]
    world = Running.on(AMPLE, {name: at_most(16) for name in names})
    for name in names:
        last = name == names[-1]
        world.run(f"x-{name}: 1x8", name, **runs(600 if last else None))
    for name in names:
        world.submit(f"{name}: 2x8", name, **runs(50))
    world.settle()
    assert not world.cluster.reservations.quota, "too many others have been looked at in vain"
    result = world.step()
    assert result.wake_at is not None
    world.now = result.wake_at
    world.settle()
    assert set(world.cluster.reservations.quota) == {names[-1]}
