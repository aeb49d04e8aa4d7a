"""A promise that cannot come true any more lapses at once, and another is made in its stead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.backfilled import runs
from tests.support.drawn import gang, node, pod, queue
from tests.support.examples import examples
from tests.support.running import Running

from lockstep.api.gang import Gang
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.reservation import Reservation
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.reservations.reserved_nodes import (
    Ending,
    comes_about,
    end_of,
    keep,
    reserved,
)
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.state.cluster import Cluster

QUEUES = {
    "r": {"limit": {"nvidia.com/gpu": 24}},
    "narrow": {"limit": {"nvidia.com/gpu": 8}},
    "s": {},
}
BIG = WorkloadKey("Gang", "default", "big")


def waiting() -> Running:
    """Nodes a and b are taken for 600 and 900 s, c and d for long; ``big`` is promised a and b."""
    world = Running.on("s/l: a:8 b:8 c:8 d:8", QUEUES)
    for name, seconds in (("x", 600), ("y", 900), ("u", 5000), ("v", 7000)):
        world.run(f"{name}: 1x8", "s", **runs(seconds))
    world.run("big: 2x8", "r", **runs(100))
    assert held(world) == (1_000_902.0, {"a", "b"})
    return world


def held(world: Running) -> tuple[float, set[str]] | None:
    found = world.cluster.reservations.room
    if found is None:
        return None
    assert found.workload.name == "big"
    return found.at, set(found.place.values())


def lose(world: Running) -> None:
    world.cluster.remove_node("b")


def cordon(world: Running) -> None:
    world.cluster.set_node(node("b", labels={"spine": "s", "leaf": "l"}, cordoned=True))


def fall_ill(world: Running) -> None:
    world.cluster.set_node(node("b", labels={"spine": "s", "leaf": "l"}, ready=False))


def shrink(world: Running) -> None:
    world.cluster.set_node(node("b", gpus=4, labels={"spine": "s", "leaf": "l"}))


def overrun(world: Running) -> None:
    world.now = 1_000_602.0


def be_extended(world: Running) -> None:
    world.annotate("y", {"lockstep.dev/runtime": "20000"})


def come_from_elsewhere(world: Running) -> None:
    world.end("y")
    world.cluster.set_pod(pod("alien", gpus=8, on="b", scheduler="other"))


def lower(world: Running) -> None:
    world.cluster.set_queue(queue("r", limit={"nvidia.com/gpu": 8}))


def move(world: Running) -> None:
    say(world, gang("big", minMember=2, queue="narrow"))


def grow(world: Running) -> None:
    say(world, gang("big", minMember=3, queue="r"))
    world.cluster.set_pod(pod("big-2", gpus=8, gang="big", group="all"))


def say(world: Running, asked: Gang) -> None:
    world.gangs["big"].gang = replace(world.gangs["big"].gang, spec=asked.spec)
    world.cluster.set_gang(world.gangs["big"].gang)


@pytest.mark.parametrize(
    ("event", "instead"),
    [
        (lose, (1_005_003.0, {"a", "c"})),
        (cordon, (1_005_003.0, {"a", "c"})),
        (fall_ill, (1_005_003.0, {"a", "c"})),
        (shrink, (1_005_003.0, {"a", "c"})),
        (overrun, (1_005_003.0, {"b", "c"})),
        (be_extended, (1_005_003.0, {"a", "c"})),
        (come_from_elsewhere, (1_005_003.0, {"a", "c"})),
        (lower, None),
        (move, None),
        (grow, (1_005_003.0, {"a", "b", "c"})),
    ],
)
def test_a_promise_that_cannot_come_true_is_remade_immediately(
    event: Callable[[Running], None], instead: tuple[float, set[str]] | None
):
    world = waiting()
    event(world)
    world.step()
    assert held(world) == instead


def test_a_gang_that_breaks_a_promise_passes_it_to_none():
    world = Running.on("s/l: a:8 b:8", QUEUES)
    world.run("x: 1x8", "s", **runs(600))
    world.run("big: 2x8", "s", **runs(100))
    world.submit("next: 1x8", "s", **runs(5000))
    world.submit("vip: 1x8", "s", "high", **runs(900))
    world.settle()
    assert world.there() == {"x", "vip"}
    assert held(world) == (1_000_904.0, {"a", "b"})


EVENTS = st.one_of(
    st.tuples(st.just("run"), st.integers(1, 8), st.sampled_from([None, 50, 400, 3000])),
    st.tuples(st.just("wait"), st.integers(1, 700), st.booleans()),
    st.tuples(st.just("end"), st.integers(0, 9), st.just(None)),
    st.tuples(st.just("node"), st.integers(0, 3), st.sampled_from(["out", "ill", 4, "back"])),
    st.tuples(st.just("limit"), st.sampled_from([8, 16, 20, 32]), st.just(None)),
    st.tuples(st.just("say"), st.integers(0, 9), st.sampled_from([50, 400, 3000])),
    st.tuples(st.just("alien"), st.integers(0, 3), st.integers(1, 4)),
)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(st.sampled_from([None, 100, 500, 900]), min_size=2, max_size=4),
    st.integers(2, 4),
    st.lists(EVENTS, max_size=8),
)
def test_what_is_promised_can_be_kept_after_any_event(there, size, events):
    world = Running.on("s/l: a:8 b:8 c:8 d:8", QUEUES)
    for number, seconds in enumerate(there):
        world.run(f"x{number}: 1x8", "s", **runs(seconds))
    world.run(f"big: {size}x6", "r", **runs(100))
    for number, event in enumerate(events):
        happen(world, number, *event)
        world.settle()
        promise = world.cluster.reservations.room
        if promise is not None:
            assert starts_in_time(world, promise), event


def happen(world: Running, number: int, what: str, one: int, more: object) -> None:
    standing = sorted(world.there() - {"big"})
    name = standing[one % len(standing)] if standing and what in ("end", "say") else ""
    if what == "run":
        world.submit(f"p{number}: 1x{one}", "r" if one % 2 else "s", **runs(more))
    elif what == "wait":
        world.now += one
        for over in [n for n in standing if more and end(world, n) <= world.now]:
            world.end(over)
    elif what == "end" and name:
        world.end(name)
    elif what == "say" and name:
        world.annotate(name, {"lockstep.dev/runtime": str(more)})
    elif what == "node":
        gpus = more if isinstance(more, int) else 8
        world.cluster.set_node(
            node("abcd"[one], gpus=gpus, cordoned=more == "out", ready=more != "ill")
        )
    elif what == "limit":
        world.cluster.set_queue(queue("r", limit={"nvidia.com/gpu": one}))
    elif what == "alien":
        world.cluster.set_pod(pod(f"alien{number}", gpus=more, on="abcd"[one], scheduler="other"))


def end(world: Running, name: str) -> float:
    """Return when a gang ends by what it states; never where it states nothing."""
    pods = world.gangs[name].pods
    found = [end_of(world.cluster, world.cluster.pods["default", p.metadata.name]) for p in pods]
    return max(float("inf") if one is None else one for one in found)


def starts_in_time(world: Running, promise: Reservation) -> bool:
    """Return whether a workload starts on its place once what ends in time has gone: by a scheduler
    that knows nothing but the objects of then, with all other nodes cordoned.
    """
    then = Running.on("s/l: a:8", QUEUES)
    then.now = promise.at
    for name, row in world.cluster.table.rows.items():
        facts = world.cluster.table.facts[row]
        assert facts is not None
        closed = name not in promise.place.values() or not facts.schedulable
        gpus = facts.allocatable["nvidia.com/gpu"]
        then.cluster.set_node(node(name, gpus=gpus, cordoned=closed, ready=facts.ready))
    then.cluster.set_queue(world.cluster.ledger.specs["r"])
    for name, drawn in world.gangs.items():
        late = end(world, name) > promise.at or end(world, name) + 0.5 < world.now
        if name == promise.workload.name or (name in world.there() and late):
            then.gangs[name] = drawn
            then.cluster.set_gang(drawn.gang)
            for one in drawn.pods:
                then.cluster.set_pod(one)
                member = world.cluster.pods["default", one.metadata.name]
                if member.node:
                    then._bind(one, member.node, member.gpus)
    for member in world.cluster.pods.values():
        if not member.ours:
            aliens = pod(member.name, gpus=member.shape.gpus, on=member.node, scheduler="other")
            then.cluster.set_pod(aliens)
    then.settle()
    return promise.workload.name in then.there()


@pytest.mark.parametrize(
    ("wanted", "ends", "comes"),
    [
        pytest.param(2, [600, 600, 600], True, id="all who share both cards end"),
        pytest.param(1, [600, 5000, 600], True, id="one card is left to somebody"),
        pytest.param(2, [600, 5000, 600], False, id="and both are wanted"),
    ],
)
def test_cards_without_any_shares_are_free_as_a_whole(wanted, ends, comes):
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2, devices=[{"index": n, "memory": 1000} for n in range(2)]))
    for number, (card, seconds) in enumerate(zip((0, 0, 1), ends, strict=True)):
        share = {"requests": {"lockstep.dev/gpu-compute": 50}, **runs(seconds)}
        cluster.set_pod(pod(f"s-{number}", on="a", held=str(card), phase="Running", **share))
        cluster.pods["default", f"s-{number}"].since = 0.0
    cluster.set_gang(gang("big", minMember=1))
    cluster.set_pod(pod("big-0", gpus=wanted, gang="big"))
    workload = cluster.workloads[BIG]
    promise = reserved(cluster, workload, 600.0, {workload.members["big-0"]: "a"})
    ending = Ending.on(cluster, promise, 1.0)
    assert comes_about(cluster, promise, ending) == comes
    if comes:
        keep(cluster, promise, ending)
        assert not any(GPU_COLUMN in columns for columns, _ in promise.kept.values())


@pytest.mark.parametrize("sharers", [0, 1], ids=["an idle card", "a card in shares"])
@pytest.mark.parametrize(
    ("runtime", "passes"), [(None, False), (900, False), (300, True)], ids=["ever", "long", "short"]
)
def test_no_share_outlasts_the_time_its_card_is_promised_whole(sharers, runtime, passes):
    cluster = Cluster()
    cluster.set_node(node("a", gpus=2, devices=[{"index": n, "memory": 1000} for n in range(2)]))
    share = {"requests": {"lockstep.dev/gpu-compute": 40}}
    there = [pod("x", gpus=1, on="a", held="0", phase="Running", **runs(600))]
    there += [pod("s", on="a", held="1", phase="Running", **runs(500), **share)][:sharers]
    for one in there:
        cluster.set_pod(one)
        cluster.pods["default", one.metadata.name].since = 0.0
    decider = Decider(cluster)
    cluster.set_gang(gang("big", minMember=1))
    cluster.set_pod(pod("big-0", gpus=2, gang="big"))
    decider.decide(1.0)
    assert cluster.reservations.room is not None
    assert cluster.reservations.room.at == 600
    cluster.set_pod(pod("t", **runs(runtime), **share))
    decider.decide(2.0)
    assert bool(cluster.pods["default", "t"].node) == passes
