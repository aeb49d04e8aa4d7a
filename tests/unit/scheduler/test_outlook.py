"""When what waits will start: as the decider itself would go on, and never a guess."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.drawn import queue
from tests.support.examples import examples
from tests.support.running import PRIORITIES, Running
from tests.support.simulated_jobs import job

from lockstep.api.core import PriorityClass
from lockstep.api.meta import ObjectMeta
from lockstep.nodes.simulated.spec import parse
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.defrag.candidates import RESTART_SECONDS
from lockstep.scheduler.core.model.decisions import Estimate
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime import start_estimates as module
from lockstep.scheduler.core.runtime.start_estimates import NEVER, OWN_PODS, StartEstimates
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import EPOCH, initial_cluster_of
from lockstep.sim.input.jobs import Job, read_jobs

SEEN: list[int] = []
"""Steps of each outlook so far."""
TWO = "s/l: a:8 b:8"


def runs(seconds: float | None) -> dict[str, Any]:
    return {"annotations": {"lockstep.dev/runtime": str(seconds)}} if seconds is not None else {}


def outlook(decider: Decider, now: float) -> dict[str, Estimate]:
    """Play the future on a copy."""
    seen, steps = StartEstimates(copy.deepcopy(decider), now), 1
    while seen.advance():
        steps += 1
    assert not seen.waiting
    SEEN.append(steps)
    return {key.name: estimate for key, estimate in seen.found.items()}


# what comes, one a second, as (gang, run time); by gang, the seconds until it starts, or why not
CASES: dict[str, tuple[list[tuple[str, float | None]], dict[str, float | str]]] = {
    "behind what runs": ([("x: 2x8", 600), ("y: 1x8", 100)], {"y": 600}),
    "one after the other": (
        [("x: 2x8", 600), ("y: 2x8", 100), ("z: 2x8", 50)], {"y": 600, "z": 700},
    ),
    "passing where that delays nobody": (
        [("x: 1x8", 600), ("y: 2x8", 100), ("z: 1x8", 2000), ("w: 1x4", 90)],
        {"y": 600, "z": 700},
    ),
    "no run time stated": (
        [("x: 2x8", None), ("y: 1x8", 100)],
        {"y": "gang x has no expected run time"},
    ),
    "some of what is in the way states none": (
        [("x: 1x8", None), ("v: 1x8", 300), ("y: 2x8", 100)],
        {"y": "gang x has no expected run time"},
    ),
    "two that never end": (
        [("x: 1x8", None), ("v: 1x8", None), ("y: 2x8", 100)],
        {"y": "gang x and gang v have no expected run time"},
    ),
    "the first in line is what never ends": (
        [("x: 2x8", 600), ("y: 2x8", None), ("z: 1x8", 10)],
        {"y": 600, "z": "gang y has no expected run time"},
    ),
    "what never fits": ([("x: 2x8", 600), ("y: 3x8", 100)], {"y": NEVER}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_when_what_waits_starts(case):
    comes, expected = case
    world = Running.on(TWO)
    began = world.now + 1.0  # the first stands a second after it came
    for text, seconds in comes:
        world.run(text, **runs(seconds))
    found = outlook(world.decider, world.now)
    shown = {
        name: one.why if one.at is None else int(one.at - began) for name, one in found.items()
    }
    assert shown == expected


@pytest.mark.parametrize(
    ("saves", "left"),
    [
        pytest.param({}, 600, id="all of its work"),
        pytest.param({"checkpoint": {"interval": "60s"}}, 360, id="what it had not saved"),
    ],
)
def test_what_is_preempted_takes_a_restart_longer(saves: dict[str, Any], left: int):
    """A gang that ran 300 of its 600 seconds gives way for 100, and another waits for it."""
    world = Running.on(TWO)
    world.run("x: 2x8", **runs(600), **saves)
    world.now += 300 - 1  # since it stands
    world.submit("y: 2x8", priority="high", **runs(100))
    world.submit("z: 2x8", priority="low", **runs(100))
    world.decider.waiting()
    found = outlook(world.decider, world.now)
    began = found["y"].at
    assert began is not None
    assert found["z"].at == pytest.approx(began + 100 + RESTART_SECONDS + left, abs=5)


def test_what_runs_longer_than_it_said_is_not_waited_for():
    world = Running.on(TWO)
    world.run("x: 2x8", **runs(60))
    world.run("y: 1x8", **runs(60))
    world.now += 600
    found = outlook(world.decider, world.now)
    assert found["y"] == Estimate(None, "gang x runs longer than expected")


def test_gangs_waiting_at_an_unfinished_look_start_no_earlier():
    world = Running.on(TWO)
    for number in range(4):
        world.run(f"g{number}: 2x8", **runs(5000))
    seen = StartEstimates(copy.deepcopy(world.decider), world.now)
    seen.advance()
    seen.advance()
    seen.break_off("enough")
    assert not seen.advance()
    started = world.now - 4 + 5000
    assert [found.at is not None for found in seen.found.values()] == [True, False, False]
    for name in ("g2", "g3"):
        told = seen.found[WorkloadKey("Gang", "default", name)]
        assert told == Estimate(None, "enough", not_before=started // 3600 * 3600)


def test_what_lacks_its_own_pods_depends_on_nobody_else():
    world = Running.on(TWO)
    world.submit("y: 2x8", **runs(60))
    world.cluster.remove_pod("default", "y-1")
    world.settle()
    assert outlook(world.decider, world.now) == {"y": Estimate(None, OWN_PODS)}


def test_a_queue_that_is_full_is_waited_for():
    world = Running.on(TWO, {"q": {"limit": {"nvidia.com/gpu": 8}}})
    began = world.now + 1.0  # the first stands a second after it came
    world.run("x: 1x8", "q", **runs(300))
    world.run("y: 1x8", "q", **runs(300))
    found = outlook(world.decider, world.now)
    assert found["y"].at == pytest.approx(began + 300, abs=0.1)


def test_a_place_that_others_are_leaving_is_taken_at_once():
    world = Running.on(TWO)
    world.graceful = True
    world.run("x: 2x8", priority="low", **runs(500))
    world.run("y: 1x8", priority="high", **runs(50))
    found = outlook(world.decider, world.now)
    assert found["y"] == Estimate(world.now)


def test_the_cluster_itself_is_left_as_it_was():
    world = Running.on(TWO)
    world.run("x: 2x8", **runs(600))
    world.run("y: 1x8", **runs(100))
    before = world.places("x"), world.cluster.table.free.tolist()
    outlook(world.decider, world.now)
    assert (world.places("x"), world.cluster.table.free.tolist()) == before


def test_long_queues_take_fewer_steps_and_stay_almost_exact(
    monkeypatch: pytest.MonkeyPatch,
):
    world = Running.on(TWO)
    for number in range(60):
        world.submit(f"g{number}: 1x4", **runs(1000 + 0.5 * number))
    world.settle()
    exact, steps = outlook(world.decider, world.now), SEEN[-1]
    monkeypatch.setattr(module, "LONG", 5)
    coarse, fewer = outlook(world.decider, world.now), SEEN[-1]
    assert fewer < steps
    for name, estimate in coarse.items():
        assert estimate.at is not None
        assert exact[name].at is not None
        assert estimate.at - world.now == pytest.approx(exact[name].at - world.now, rel=0.03)


def arrived(cluster: Cluster, works: Sequence[Job]) -> Decider:
    """Return the decider when all jobs have come and nothing more can be placed."""
    for work in works:
        cluster.set_gang(work.gang)
        for one in work.pods:
            cluster.set_pod(one)
    decider = Decider(cluster)
    while (found := decider.decide(EPOCH)).more or found.evictions or found.placements:
        pass
    return decider


NOTHING_SAVED = Faults(restart_cost=RESTART_SECONDS, checkpoint_interval=1e9)
"""What is preempted begins again with all of its work, after a restart, as an estimate takes it."""
SIZES = st.sampled_from(["1x1", "1x4", "1x8", "2x8", "3x8", "2x4"])
RUNTIMES = st.integers(1, 50)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(
            SIZES,
            RUNTIMES,
            st.sampled_from("qr"),
            st.sampled_from(["", "low", "high"]),
            st.sampled_from([{}, {"maxWait": "20s"}, {"maxWait": "1m"}]),
        ),
        max_size=9,
    ),
    st.sampled_from([None, 8, 16]),
)
@example(  # the last passes once it is known who stands
    [
        *[("1x1", 1, "q", "", {}), ("1x1", 1, "q", "", {}), ("1x4", 1, "r", "", {})],
        *[("1x1", 2, "r", "", {}), ("1x8", 1, "q", "", {}), ("1x8", 1, "q", "low", {})],
        *[("1x8", 1, "r", "", {}), ("1x8", 2, "q", "", {}), ("1x1", 1, "q", "low", {})],
    ],
    16,
)
@example(  # the first in line loses its promise while others' bindings are under way
    [
        *[("1x1", 19, "q", "low", {}), ("1x4", 19, "r", "", {}), ("1x4", 35, "r", "high", {})],
        *[("2x8", 1, "q", "low", {}), ("2x4", 13, "q", "", {}), ("2x8", 1, "q", "", {})],
        *[("1x1", 1, "q", "", {}), ("2x4", 35, "r", "high", {}), ("1x8", 13, "q", "", {})],
    ],
    8,
)
def test_with_exact_run_times_everything_starts_when_it_was_told(asked, promised):
    """The estimate is the start itself as long as nothing new comes and all ends as stated.

    No two ends coincide: of what comes at the very same time nobody knows which is first.
    """
    world = initial_cluster_of(parse("3x8"))
    for name in ("low", "high"):
        meta = ObjectMeta(name=name)
        world.priority_classes.append(PriorityClass(metadata=meta, value=PRIORITIES[name]))
    if promised is not None:
        world.queues += [queue("q", guaranteed={"nvidia.com/gpu": promised}), queue("r")]
    jobs = [
        job(
            f"j{n}",
            size,
            runs=seconds + 0.0137 * (n + 1) ** 2,
            queue=where,
            priorityClassName=name,
            **waits,
        )
        for n, (size, seconds, where, name, waits) in enumerate(asked)
    ]
    works = read_jobs(jobs, world)
    told = outlook(arrived(world.cluster(), works), EPOCH)
    result = Simulation(world, works, Options(faults=NOTHING_SAVED)).run()
    started = {life.name: life.started for life in result.lives}
    for name, estimate in told.items():
        real = started[name]
        if estimate.at is None:
            assert real is None
        else:
            assert real is not None
            assert estimate.at - EPOCH == pytest.approx(real, abs=0.01)


@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(st.tuples(SIZES, RUNTIMES), min_size=1, max_size=6),
    SIZES,
    RUNTIMES,
    st.integers(2, 5),
)
def test_of_equals_who_comes_first_starts_first(others, size, seconds, number):
    world = Running.on("s/l: a:8 b:8 c:8")
    for n, (shape, runtime) in enumerate(others):
        world.run(f"o{n}: {shape}", **runs(100 + runtime))
    for n in range(number):
        world.run(f"e{n}: {size}", **runs(100 + seconds))
    found = outlook(world.decider, world.now)
    starts = [found[f"e{n}"].at for n in range(number) if f"e{n}" in found]
    assert starts == sorted(at for at in starts if at is not None)
