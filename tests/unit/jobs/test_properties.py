"""Whatever happens to a job's pods, and whenever, these hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.job_world import Crash, FakeCluster
from tests.support.jobs import job, mpi_roles, role

from lockstep.api.names import ATTEMPT_LABEL

JOBS = {
    "fixed": job(role(replicas=3), recovery={"maxRestarts": 4}),
    "elastic": job(role(replicas=3, min=2, max=4), recovery={"maxRestarts": 4}),
    "mpi": job(*mpi_roles(), framework="mpi", recovery={"maxRestarts": 4}),
}
EVENTS = st.one_of(
    st.tuples(
        st.sampled_from(["fail", "succeed", "vanish", "delete"]),
        st.integers(0, 3),
    ),
    st.tuples(st.sampled_from(["place", "start", "let go", "suspend", "resume"]), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 400)),
    st.tuples(st.just("crash"), st.integers(0, 3)),
    st.tuples(st.just("scale"), st.integers(2, 4)),
)


def happen(world: FakeCluster, event: str, number: int) -> None:
    assert world.job is not None
    names = sorted(world.pods)
    name = names[number % len(names)] if names else None
    if event == "wait":
        world.now += number
    elif event in ("place", "start"):
        getattr(world, event)()
    elif event == "let go":
        world.let_go()
    elif event in ("suspend", "resume"):
        world.edit(suspend=event == "suspend")
    elif event == "scale" and world.job.spec.roles[0].min is not None:
        world.edit(roles=[role(replicas=number, min=2, max=4)])
    elif event == "crash":
        world.calls_left = number
    elif name is not None:
        touch(world, event, name)


def touch(world: FakeCluster, event: str, name: str) -> None:
    running = world.pods[name].status.phase == "Running"
    if event == "fail" and running:
        world.fail(name)
    elif event == "succeed" and running:
        world.set(name, "Succeeded")
    elif event == "vanish":
        del world.pods[name]
    elif event == "delete":
        world.ask_to_end(name)


def reconcile(world: FakeCluster) -> None:
    try:
        world.reconcile()
    except Crash:
        world.calls_left = None


def check(world: FakeCluster, before: Any) -> None:
    assert world.job is not None
    status = world.job.status
    assert status.restarts <= 4
    assert status.restarts >= before.restarts
    assert status.attempt >= before.attempt
    running = {p.metadata.labels[ATTEMPT_LABEL] for p in world.pods.values() if up(p)}
    assert len(running) <= 1, "two attempts run at once"
    if before.phase in ("Succeeded", "Failed"):
        assert status.phase == before.phase
    if status.phase in ("Succeeded", "Failed"):
        assert status.completion_time is not None
        assert status.message


def up(pod: Any) -> bool:
    return pod.status.phase == "Running"


@pytest.mark.parametrize("kind", JOBS)
@settings(max_examples=examples(150), deadline=None)
@given(events=st.lists(EVENTS, max_size=40))
def test_any_history_keeps_the_rules_and_can_still_run(
    kind: str, events: list[tuple[str, int]]
) -> None:
    world = FakeCluster(JOBS[kind])
    for event, number in events:
        assert world.job is not None
        before = world.job.status
        happen(world, event, number)
        reconcile(world)
        check(world, before)
    bring_to_an_end(world)
    assert world.job is not None
    assert world.job.status.phase in ("Running", "Succeeded", "Failed")


def bring_to_an_end(world: FakeCluster) -> None:
    """Let everybody do their part, with nothing going wrong any more."""
    world.calls_left = None
    world.edit(suspend=False)
    for _ in range(4):
        world.now += 400
        world.run()
