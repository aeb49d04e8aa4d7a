"""A job's record tells what happened, and every view tells the record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.job_world import Crash, FakeCluster
from tests.support.jobs import job, role

from lockstep.api import duration, timestamp
from lockstep.api.goodput import spent
from lockstep.api.job_history import (
    CAUSE_OF,
    MOST_ATTEMPTS,
    MOST_SPANS,
    History,
    present,
    seconds,
)
from lockstep.cli.views import describe, history, jobs
from lockstep.console.views import timeline

PODS = ["fail", "preempt", "lose", "report", "step"]
LIVES = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["fail", "preempt", "lose", "report", "step"]), st.integers(0, 2)
        ),
        st.tuples(st.sampled_from(["place", "start", "run", "suspend", "resume"]), st.just(0)),
        st.tuples(st.just("scale"), st.integers(2, 3)),
        st.tuples(st.just("killed"), st.integers(0, 4)),
        st.tuples(st.just("wait"), st.integers(1, 500)),
    ),
    max_size=30,
)


@dataclass
class Audit:
    """What is written down beside the controller: of the events it sends, and of the clock."""

    world: FakeCluster
    began: float = 0.0
    off: float = 0.0
    at: float = 0.0
    suspended: bool = False
    restarts: int = 0
    told: int = 0
    words: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Put the time since the last look to what it was, then read the new events."""
        if self.suspended:
            self.off += self.world.now - self.at
        self.at = self.world.now
        for word in self.world.told[self.told :]:
            self.words[word] += 1
            self.suspended = word == "Suspended" or (self.suspended and word != "Resumed")
        self.told = len(self.world.told)


def happen(world: FakeCluster, event: str, number: int) -> None:
    names = sorted(world.pods)
    name = names[number % len(names)] if names else None
    if event == "wait":
        world.now += number
    elif event in ("place", "start"):
        getattr(world, event)()
    elif event == "run":
        world.now += 400
        world.place()
        world.settle()
        world.start()
    elif event in ("suspend", "resume"):
        world.edit(suspend=event == "suspend")
    elif event == "scale":
        world.edit(roles=[role(replicas=number, min=2, max=3)])
    elif event == "killed":
        world.calls_left = number
    elif name is not None:
        of_a_pod(world, event, name, number)


def of_a_pod(world: FakeCluster, event: str, name: str, number: int) -> None:
    running = world.pods[name].status.phase == "Running"
    if event == "fail" and running:
        world.fail(name)
    elif event == "lose":
        world.disrupt(name)
    elif event == "preempt" and running:
        world.preempt(name)
    elif ("Lease", name) in world.objects and ("ConfigMap", "digits-world") in world.objects:
        for one in world.pods:
            if ("Lease", one) in world.objects:
                step = {"step": number, "ranks": [{"local": 0, "steps": number}]}
                state = "Ready" if event == "report" else "Running"
                world.report(one, state, **(step if event == "step" else {}))


def live(events: list[tuple[str, int]], **spec: Any) -> tuple[FakeCluster, Audit]:
    """Return a job after *events*, with the audit that was kept meanwhile."""
    world = FakeCluster(job(role(replicas=3, min=2, max=3), **spec))
    world.settle()
    audit = Audit(world, began=world.now, at=world.now)
    for event, number in [("run", 0), *events]:
        happen(world, event, number)
        audit.look()
        try:
            world.reconcile()
        except Crash:
            world.calls_left = None
            world.reconcile()
        world.let_go()
        audit.look()
    world.calls_left = None
    world.settle()
    audit.look()
    return world, audit


def past(world: FakeCluster) -> History:
    assert world.job is not None
    return world.job.status.history


@settings(max_examples=examples(150), deadline=None)
@given(events=LIVES)
def test_the_record_of_any_life_agrees_with_an_audit(events: list[tuple[str, int]]) -> None:
    world, audit = live(events, recovery={"maxRestarts": 100})
    assert world.job is not None
    status, record, now = world.job.status, past(world), world.now
    spans = [(one, seconds(one, now)) for one in record.spans]
    over = status.completion_time is not None
    end = timestamp.parse(status.completion_time) if status.completion_time else now
    assert sum(long for _, long in spans) == end - audit.began
    for before, after in zip(record.spans, record.spans[1:], strict=False):
        assert before.end == after.begin
        assert before.phase != after.phase
    off = sum(long for one, long in spans if one.phase == "suspended")
    assert off == audit.off
    assert sum(one.counted for one in record.attempts) == status.restarts
    assert audit.words["Restarting"] == status.restarts
    assert sum(not one.end for one in record.attempts) <= 1
    assert (present(record) is None) == over
    by_cause: dict[str, float] = dict.fromkeys(("", "waiting", *CAUSE_OF.values()), 0.0)
    for one, long in spans:
        by_cause[CAUSE_OF[one.phase]] += long
    told = spent(status.goodput, now)
    assert {cause: by_cause[cause] for cause in told} == told
    views_agree(world, by_cause)


def views_agree(world: FakeCluster, by_cause: dict[str, float]) -> None:
    """Hold what the console and the command line show to the seconds of the audit."""
    assert world.job is not None
    record, now = past(world), world.now
    stages = timeline.stages(world.job)
    assert [(s["stage"], s["start"], s["end"]) for s in stages] == [
        (one.phase, one.begin, one.end) for one in record.spans
    ]
    attempts = timeline.attempts(world.job)
    assert [one["why"] for one in attempts if "end" in one] == [
        one.why for one in record.attempts if one.end
    ]
    held = sum(by_cause.values()) - by_cause["waiting"] - by_cause[""]
    if world.job.status.start_time:
        assert jobs.ran(world.job, now) == duration.show(held)
    page = "\n".join(describe.describe_job(world.job, None, [], [], now))
    for one in record.attempts:
        assert one.reason in page
    assert history.doing(world.job, now) in page


def test_the_record_of_a_crash_loop_stays_small() -> None:
    world = FakeCluster(job(role(), recovery={"maxRestarts": 500}))
    for _ in range(3 * MOST_ATTEMPTS):
        world.now += 400
        world.run()
        world.now += 10
        world.fail("digits-worker-1")
        world.settle()
    record = past(world)
    assert len(record.attempts) == MOST_ATTEMPTS
    assert len(record.spans) <= MOST_SPANS
    assert record.dropped_attempts >= 2 * MOST_ATTEMPTS - 1
    assert world.job is not None
    began = timestamp.parse(world.job.status.queued_at or "")
    assert sum(spent(world.job.status.goodput, world.now).values()) == world.now - began


def test_a_failed_rank_stays_on_record_with_its_last_words() -> None:
    world = FakeCluster(job())
    world.run()
    world.everybody("Ready")
    world.everybody("Running", step=7, ranks=[{"local": 0, "steps": 7}])
    killed = {"rank": 1, "at": 5.0, "signal": 11, "line": "a harmless warning"}
    world.report("digits-worker-1", "Failed", step=7, ended=killed)
    world.now += 60
    world.settle()
    first = past(world).attempts[0]
    assert (first.step, first.pods, first.ranks, first.nodes) == (7, 2, 2, ["node-1"])
    assert first.ended[0].signal == 11
    assert world.job is not None
    assert list(history.last_end(world.job)) == [
        "rank 1 in pod digits-worker-1 ended by signal 11 (SIGSEGV); "
        "it wrote last: a harmless warning"
    ]
