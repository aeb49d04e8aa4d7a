"""A job's time is put to what it went to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.support.job_world import FakeCluster
from tests.support.jobs import job, role

from lockstep.api import timestamp
from lockstep.api.goodput import Goodput, in_words, lost_in_words, spent
from lockstep.api.names import REPORT_ANNOTATION

PODS = ("digits-worker-0", "digits-worker-1")


def ranks(steps: int, **more: Any) -> list[dict[str, Any]]:
    return [{"local": 0, "steps": steps, **more}]


def goodput(world: FakeCluster) -> Goodput:
    assert world.job is not None
    return world.job.status.goodput


def tell(world: FakeCluster, state: str = "Running", **report: Any) -> str:
    """Let all launchers report; return what the job's time goes to then."""
    for name in PODS:
        world.report(name, state, **report)
    world.settle()
    return goodput(world).cause


def training() -> FakeCluster:
    world = FakeCluster(job(role(), checkpoint={"directory": "/kept"}))
    world.run()
    tell(world, "Ready")
    assert tell(world, ranks=ranks(0)) == "starting"
    assert tell(world, ranks=ranks(5), step=5) == "productive"
    return world


def test_a_job_waits_starts_and_steps() -> None:
    world = FakeCluster(job())
    world.settle()
    assert goodput(world).cause == "waiting"
    world.now += 60
    world.run()
    assert goodput(world).cause == "starting"
    assert spent(goodput(world), world.now)["waiting"] >= 60


def test_steps_that_are_done_again_do_not_count() -> None:
    world = training()
    world.now += 100
    for name in PODS:
        world.report(name, "Running", ranks=ranks(8), step=8)
    world.report(PODS[1], "Failed", step=8, ended={"rank": 1, "at": 5.0, "signal": 9})
    world.settle()
    assert (goodput(world).cause, goodput(world).step) == ("starting", 8)
    tell(world, "Ready", snapshots=[{"local": 0, "step": 6}])
    assert tell(world, ranks=ranks(0), step=6) == "restoring"
    assert tell(world, ranks=ranks(1), step=7) == "recomputing"
    assert tell(world, ranks=ranks(2), step=8) == "productive"
    assert goodput(world).seconds["productive"] >= 100


def test_time_while_a_rank_may_hang_is_told_apart() -> None:
    world = training()
    assert tell(world, ranks=ranks(5, suspect=True), step=5) == "hung"


def test_a_suspended_job_spends_no_time() -> None:
    world = training()
    world.edit(suspend=True)
    world.settle()
    before = goodput(world).seconds
    world.now += 1000
    assert (goodput(world).cause, spent(goodput(world), world.now)) == ("", before)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({}, ""),
        ({"productive": 50.0}, "100 %"),
        ({"productive": 90.0, "waiting": 2.0, "hung": 8.0}, "90 % (hung 8 %, waiting 2 %)"),
        ({"waiting": 5.0}, "0 % (waiting 100 %)"),
    ],
)
def test_shares_in_words(seconds: dict[str, float], words: str) -> None:
    assert in_words(Goodput(seconds=seconds), 0.0) == words


def test_a_program_without_our_lines_repeats_what_it_lost() -> None:
    world = FakeCluster(job(role()))
    world.run()
    tell(world, "Ready")
    began = world.now
    world.now += 1850
    assert tell(world, ranks=ranks(1850, begun=0, at=world.now, seconds=1.0)) == "productive"
    world.report(
        PODS[1],
        "Failed",
        ranks=ranks(1850, begun=0, at=world.now, seconds=1.0),
        ended={"rank": 1, "at": 5.0, "signal": 9},
    )
    world.settle()
    tell(world, "Ready")
    world.now += 2000
    assert tell(world, ranks=ranks(1900, begun=0, at=world.now, seconds=1.0)) == "productive"
    found = goodput(world)
    assert (found.step, found.lost) == (1850, {"RanksAnew": 1850})
    assert lost_in_words(found) == "1,850 steps (1,850 after a rank that ended)"
    seconds = spent(found, world.now)
    assert seconds["recomputing"] == 1850
    assert seconds["productive"] == 1850 + 50
    assert sum(seconds.values()) == world.now - began


FAULTS = st.sampled_from(["rank", "pod", "suspend"])


@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(
    lives=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(0, 9), FAULTS, st.booleans()),
        min_size=1,
        max_size=6,
    ),
    pace=st.integers(1, 4),
)
def test_steps_and_seconds_are_those_of_an_audit(
    lives: list[tuple[int, int, int, str, bool]], pace: int
) -> None:
    """Each life begins at a step, makes some, idles a while and ends by a fault."""
    world = FakeCluster(job(role(), recovery={"maxRestarts": 99}))
    began, done, audit, paused = world.now, 0, Counter[str](), 0.0
    stale: list[dict[str, Any]] = []
    for made, back, idle, fault, reports in lives:
        world.run()
        # A launcher shows the figures of earlier ranks until it has started new ones.
        tell(world, "Ready", ranks=stale)
        first = max(0, done - back)
        world.now += idle
        for step in range(1, made + 1):
            world.now += pace
            audit["again" if first + step <= audit["furthest"] else "new"] += 1
            if reports or step == made:
                tell(world, ranks=ranks(step, begun=first, at=world.now, seconds=float(pace)))
        stale = ranks(made, begun=first, at=world.now, seconds=float(pace))
        if made:
            audit["lost"] += done - first
            done = first + made
            audit["furthest"] = max(audit["furthest"], done)
        paused += end(world, fault, idle)
    found = goodput(world)
    assert found.step == (audit["furthest"] or -1)
    assert sum(found.lost.values()) == audit["lost"]
    seconds = spent(found, world.now)
    assert sum(seconds.values()) == world.now - began - paused
    assert seconds.get("productive", 0) == pace * audit["new"]
    assert seconds.get("recomputing", 0) == pace * audit["again"]


def end(world: FakeCluster, fault: str, idle: int) -> float:
    """Let ranks end by *fault*; return the seconds in which the job was suspended."""
    if fault == "rank":
        told = world.objects["Lease", PODS[1]].metadata.annotations[REPORT_ANNOTATION]
        kept = msgspec.json.decode(told)
        more = {k: kept[k] for k in ("ranks",) if k in kept}
        world.report(PODS[1], "Failed", ended={"rank": 1, "at": 5.0, "signal": 9}, **more)
    elif fault == "pod":
        world.disrupt(PODS[0])
    elif fault == "suspend":
        world.edit(suspend=True)
        world.settle()
        world.now += idle
        world.edit(suspend=False)
    world.settle()
    assert world.job is not None
    if (retry := timestamp.read(world.job.status.retry_at)) is not None and retry > world.now:
        world.now = retry
    return float(idle) if fault == "suspend" else 0.0
