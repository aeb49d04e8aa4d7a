"""Jobs that move for others in simulated time: when, at what price, and what they lose."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.simulated_jobs import Json, job, simulate

from lockstep.api.meta import ObjectMeta
from lockstep.api.names import CHECKPOINT_ANNOTATION
from lockstep.api.queue import DefragmentationPolicy, Queue, QueueSpec
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import initial_cluster_of
from lockstep.sim.result.record import Result

FAULTS = Faults(checkpoint_interval=40, restart_cost=30)


def saving(obj: Json) -> Json:
    """Return a job that says that it saves its work."""
    obj["metadata"]["annotations"][CHECKPOINT_ANNOTATION] = "2026-01-01T00:00:00Z"
    return obj


def scattered(policy: DefragmentationPolicy | None, *, own: bool = False, **more: Any) -> Result:
    """Return a run in which, at 100 s, three nodes are half free and a job wants a whole one."""
    short = [job(f"{node}-short", "1x4", runs=100) for node in "abc"]
    long = [saving(job(f"{node}-long", "1x4", runs=1000)) for node in "abc"]
    pairs = [one for pair in zip(short, long, strict=True) for one in pair]
    world = initial_cluster_of(parse("3x8"))
    if own:
        spec = QueueSpec(defragmentation=policy)
        world.queues.append(Queue(metadata=ObjectMeta(name="default"), spec=spec))
    options = Options(faults=FAULTS, defrag=None if own else policy)
    return simulate(world, *pairs, job("whole", "1x8", at=10, runs=50), options=options)


def started(result: Result, name: str) -> float | None:
    return next(life.started for life in result.lives if life.name == name)


@pytest.mark.parametrize(
    ("policy", "start", "moves"),
    [
        pytest.param(None, 1000, 0, id="nobody moves unless a policy says so"),
        pytest.param(DefragmentationPolicy(after="60s"), 100, 1, id="as soon as it helps"),
        pytest.param(DefragmentationPolicy(after="5m"), 310, 1, id="not before it waited so long"),
        pytest.param(
            DefragmentationPolicy(after="60s", max_price="30s"), 1000, 0, id="not at any price"
        ),
        pytest.param(
            DefragmentationPolicy(after="60s", cool_down="5m"),
            300,
            1,
            id="not who has just begun",
        ),
    ],
)
@pytest.mark.parametrize("own", [True, False], ids=["the queue's own", "for all queues"])
def test_a_policy_moves_jobs_for_one_that_waits(policy, start, moves, own):
    if policy is not None and policy.cool_down == "1h":
        policy = DefragmentationPolicy(policy.after, policy.max_price, "1s")
    result = scattered(policy, own=own)
    assert started(result, "whole") == pytest.approx(start, abs=60)
    assert sum(life.moves for life in result.lives) == moves


def test_who_moves_loses_what_the_plan_says_and_goes_on():
    result = scattered(DefragmentationPolicy("60s", "8h", "1s"))
    (one,) = result.rearrangements
    moved = next(life for life in result.lives if life.moves)
    behind = one.time % 40
    assert behind
    assert (one.job, one.moved) == ("whole", (moved.name,))
    assert moved.lost == behind * 4
    assert one.price == (behind + 30) * 4
    assert moved.ended == 1000 + behind + 30
    assert moved.preemptions == 0


@pytest.mark.parametrize(("interval", "every"), [("50s", 50), ("5m", 300), (None, 40)])
def test_a_job_loses_the_work_since_its_last_checkpoint(interval, every):
    stated = {"checkpoint": {} if interval is None else {"interval": interval}}
    short = [job(f"{node}-short", "1x4", runs=107) for node in "abc"]
    long = [job(f"{node}-long", "1x4", runs=1000, **stated) for node in "abc"]
    pairs = [one for pair in zip(short, long, strict=True) for one in pair]
    options = Options(faults=FAULTS, defrag=DefragmentationPolicy("60s", "8h", "1s"))
    result = simulate(
        initial_cluster_of(parse("3x8")),
        *pairs,
        job("whole", "1x8", at=10, runs=50),
        options=options,
    )
    (one,) = result.rearrangements
    moved = next(life for life in result.lives if life.moves)
    behind = one.time % every
    assert behind
    assert one.price == (behind + 30) * 4
    assert moved.lost == behind * 4


def test_a_single_member_moves_while_the_job_loses_no_work():
    short = [job(f"{node}-short", "1x4", runs=100) for node in "abc"]
    long = [job("a-long", "1x4", runs=1000), job("bend", "1..2x4", runs=1000, strategy="Spread")]
    whole = job("whole", "1x8", at=10, runs=50)
    pairs = [short[0], long[0], short[1], long[1], short[2]]
    options = Options(faults=FAULTS, defrag=DefragmentationPolicy("60s", "8h", "1s"))
    result = simulate(initial_cluster_of(parse("3x8")), *pairs, whole, options=options)
    (one,) = result.rearrangements
    moved = next(life for life in result.lives if life.moves)
    assert (one.price, moved.name, moved.lost, moved.ended) == (0, "bend", 0, 1000)
