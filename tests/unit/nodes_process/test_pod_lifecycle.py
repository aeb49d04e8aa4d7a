"""What is done next with a pod."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pods import ended, make, running

from lockstep.nodes.process import backoff
from lockstep.nodes.process.facts import (
    ContainerFacts,
    Exit,
    Hindrance,
    PodFacts,
    Role,
    Run,
    Verdict,
    containers_of,
)
from lockstep.nodes.process.pod_lifecycle import (
    DEADLINE_EXCEEDED,
    Decision,
    Fail,
    Prepare,
    Release,
    Start,
    Stop,
    decide,
    finished,
    retry,
)
from lockstep.nodes.process.spec import Pod

NOW = 200.0
READY = PodFacts(accepted_at=100.0, prepared=True, ip="127.1.2.3")


def facts(**containers: ContainerFacts) -> PodFacts:
    return replace(READY, containers=containers)


@pytest.mark.parametrize(
    ("what", "pod", "known", "wanted"),
    [
        ("a new pod is prepared", make(), PodFacts(accepted_at=NOW), Decision((Prepare(),))),
        (
            "preparing waits after a failure",
            make(),
            PodFacts(accepted_at=NOW, hindrance=Hindrance("r", "m", NOW + 3)),
            Decision(wake=NOW + 3),
        ),
        (
            "all main containers start",
            make("a", "b"),
            READY,
            Decision((Start("a", 0), Start("b", 0))),
        ),
        (
            "the first init container comes first",
            make(init=("i", "j")),
            READY,
            Decision((Start("i", 0),)),
        ),
        ("and is waited for", make(init=("i", "j")), facts(i=running()), Decision()),
        ("then the next", make(init=("i", "j")), facts(i=ended(0)), Decision((Start("j", 0),))),
        ("then the main ones", make(init=("i",)), facts(i=ended(0)), Decision((Start("main", 0),))),
        (
            "a failed init container is run again",
            make(init=("i",), restartPolicy="OnFailure"),
            facts(i=ended(1)),
            Decision((Start("i", 1),)),
        ),
        (
            "but not when nothing is to be restarted",
            make(init=("i",), restartPolicy="Never"),
            facts(i=ended(1)),
            Decision((Release(),)),
        ),
        (
            "a sidecar starts before the rest",
            make(sidecars=("s",)),
            READY,
            Decision((Start("s", 0),)),
        ),
        (
            "and holds the rest up until it has started",
            make(sidecars=("s",)),
            facts(s=running(started=False)),
            Decision(),
        ),
        ("then goes on", make(sidecars=("s",)), facts(s=running()), Decision((Start("main", 0),))),
        (
            "it is restarted whatever the policy",
            make(sidecars=("s",), restartPolicy="Never"),
            facts(s=ended(0), main=running()),
            Decision((Start("s", 1),)),
        ),
        (
            "and stopped when the main ones are done",
            make(sidecars=("s",), restartPolicy="Never"),
            facts(s=running(), main=ended(0)),
            Decision((Stop("s", 30.0, "the pod ends"),)),
        ),
        (
            "sidecars end one by one, the last first",
            make(sidecars=("s", "t"), restartPolicy="Never"),
            facts(s=running(), t=running(), main=ended(0)),
            Decision((Stop("t", 30.0, "the pod ends"),)),
        ),
        ("what ran is run again", make(), facts(main=ended(0)), Decision((Start("main", 1),))),
        (
            "after its back-off",
            make(),
            facts(main=ended(1, at=195.0, backoff=10.0)),
            Decision(wake=205.0),
        ),
        (
            "to the moment",
            make(),
            facts(main=ended(1, at=190.5, backoff=10.0)),
            Decision(wake=200.5),
        ),
        (
            "and no longer",
            make(),
            facts(main=ended(1, at=190.0, backoff=10.0)),
            Decision((Start("main", 1),)),
        ),
        (
            "success is enough for OnFailure",
            make(restartPolicy="OnFailure"),
            facts(main=ended(0)),
            Decision((Release(),)),
        ),
        (
            "failure is not",
            make(restartPolicy="OnFailure"),
            facts(main=ended(2)),
            Decision((Start("main", 1),)),
        ),
        (
            "init containers are not looked at again",
            make(init=("i",)),
            facts(i=ended(1), main=ended(0)),
            Decision((Start("main", 1),)),
        ),
        (
            "a hindrance holds the start up",
            make(),
            facts(main=ContainerFacts(hindrance=Hindrance("r", "m", NOW + 2))),
            Decision(wake=NOW + 2),
        ),
        (
            "an unhealthy container is stopped",
            make(),
            facts(main=running(unhealthy="failed liveness probe")),
            Decision((Stop("main", 30.0, "failed liveness probe"),)),
        ),
        (
            "once",
            make(),
            facts(main=running(unhealthy="failed liveness probe", stopping=True)),
            Decision(),
        ),
        (
            "the deadline wakes",
            make(activeDeadlineSeconds=150),
            facts(main=running()),
            Decision(wake=250.0),
        ),
        (
            "and fails the pod",
            make(activeDeadlineSeconds=100),
            facts(main=running()),
            Decision((Fail(DEADLINE_EXCEEDED),)),
        ),
        (
            "a deleted pod is stopped",
            make("a", "b"),
            replace(facts(a=running(), b=running()), deleted=True, grace=7.0),
            Decision((Stop("a", 7.0, "the pod ends"), Stop("b", 7.0, "the pod ends"))),
        ),
        (
            "and let go when nothing runs",
            make(),
            replace(facts(main=ended(143)), deleted=True),
            Decision((Release(),)),
        ),
        (
            "once",
            make(),
            replace(facts(main=ended(143)), deleted=True, released=True),
            Decision(),
        ),
        (
            "a verdict ends it likewise",
            make(),
            replace(facts(main=running()), verdict=Verdict("Evicted", "m"), grace=5.0),
            Decision((Stop("main", 5.0, "the pod ends"),)),
        ),
    ],
)
def test_decision(what: str, pod: Pod, known: PodFacts, wanted: Decision) -> None:
    assert decide(pod, known, NOW) == wanted, what


@pytest.mark.parametrize(
    ("runs", "waits"),
    [
        ([1.0] * 8, [0, 10, 20, 40, 80, 160, 300, 300]),
        ([1.0, 1.0, 600.0, 1.0], [0, 10, 0, 10]),
    ],
)
def test_back_off_doubles_up_to_five_minutes_and_is_forgotten(
    runs: list[float], waits: list[float]
) -> None:
    found: list[float] = []
    waited: float | None = None
    for ran_for in runs:
        waited = backoff.after(waited, ran_for)
        found.append(waited)
    assert found == waits


def test_failures_to_start_are_retried_less_and_less_often() -> None:
    hindrance = None
    waits = []
    for _ in range(9):
        hindrance = retry(hindrance, "r", "m", 0.0)
        waits.append(hindrance.retry_at)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


PODS = st.builds(
    make,
    st.just("a"),
    st.just("b"),
    init=st.sampled_from([(), ("i",), ("i", "j")]),
    sidecars=st.sampled_from([(), ("s",), ("s", "t")]),
    restartPolicy=st.sampled_from(["Always", "OnFailure", "Never"]),
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("end"), st.sampled_from(["a", "b", "i", "j", "s", "t"]), st.sampled_from([0, 1])
        ),
        st.tuples(st.just("delete"), st.just(""), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.sampled_from([1, 60, 700])),
    ),
    max_size=30,
)


class World:
    """A machine without processes that does at once what it is told."""

    def __init__(self, pod: Pod) -> None:
        self.pod, self.now, self.facts = pod, NOW, READY
        self.known: dict[str, ContainerFacts] = {}
        self.order: list[str] = []

    def settle(self) -> None:
        """Do all there is to do; it must come to an end."""
        for _ in range(50):
            self.facts = replace(self.facts, containers=dict(self.known))
            decision = decide(self.pod, self.facts, self.now)
            if not decision.actions:
                return
            for action in decision.actions:
                self.act(action)
        raise AssertionError(f"never at rest: {decision}")

    def act(self, action: object) -> None:
        if isinstance(action, Start):
            assert not self.facts.deleted
            assert not self.of(action.container).running
            self.order.append(action.container)
            run = Run(action.attempt, self.now, 1)
            self.known[action.container] = ContainerFacts(run=run, started=True, ready=True)
        elif isinstance(action, Stop):
            self.end(action.container, 143)
        elif isinstance(action, Release):
            assert not any(one.running for one in self.known.values())
            self.facts = replace(self.facts, released=True)

    def of(self, name: str) -> ContainerFacts:
        return self.known.get(name, ContainerFacts())

    def end(self, name: str, code: int) -> None:
        found = self.of(name)
        if found.run is not None and found.running:
            run = replace(found.run, exit=Exit(code, finished=self.now))
            wait = backoff.after(found.backoff if run.attempt else None, self.now - run.started)
            self.known[name] = replace(found, run=run, backoff=wait)


@settings(deadline=None)
@given(PODS, EVENTS)
def test_whatever_happens_the_pod_comes_to_rest_in_order(
    pod: Pod, events: list[tuple[str, str, int]]
) -> None:
    world = World(pod)
    world.settle()
    for event, name, number in events:
        if event == "end":
            world.end(name, number)
        elif event == "delete":
            world.facts = replace(world.facts, deleted=True)
        else:
            world.now += number
        world.settle()
    firsts = list(dict.fromkeys(world.order))
    wanted = [one.name for one, _ in containers_of(pod)]
    assert firsts == wanted[: len(firsts)]
    if finished(pod, world.facts) or world.facts.deleted:
        assert world.facts.released
        assert not any(one.running for one in world.known.values())
    mains_began = any(world.of(one.name).run for one in pod.spec.containers)
    inits = [one.name for one, role in containers_of(pod) if role is Role.INIT]
    if mains_began:
        assert all((end := world.of(one).exit) is not None and end.code == 0 for one in inits)
