"""The lives of pods on simulated nodes, by a clock that the test holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.examples import examples

from lockstep.api.core import Pod, PodSpec, PodStatus
from lockstep.api.meta import ObjectMeta
from lockstep.api.timestamp import show
from lockstep.nodes.simulated.timeline import Act, Action, Timeline

NODES = frozenset({"n1", "n2"})
NOW = 1_000_000.0


def pod(
    name: str = "p",
    *,
    uid: str = "u",
    node: str = "n1",
    phase: str = "Pending",
    started: float | None = None,
    deleting: bool = False,
    **annotations: str,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="s",
            uid=uid,
            deletion_timestamp=show(NOW) if deleting else None,
            annotations={f"lockstep.dev/{k.replace('_', '-')}": v for k, v in annotations.items()},
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase, start_time=None if started is None else show(started)),
    )


def due(timeline: Timeline, now: float) -> list[tuple[Act, str, int]]:
    """Do what is due, successfully, and return it."""
    found = []
    for action in timeline.due(now):
        found.append((action.act, action.pod.metadata.name, action.exit_code))
        timeline.done(action, now, worked=True)
    return found


def test_a_pod_starts_runs_and_ends() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(start_delay="2", runtime="10"), NOW)
    assert due(timeline, NOW + 1.9) == []
    assert timeline.next_due() == NOW + 2.0
    assert due(timeline, NOW + 2.0) == [(Act.START, "p", 0)]
    assert due(timeline, NOW + 11.9) == []
    assert due(timeline, NOW + 12.0) == [(Act.END, "p", 0)]
    assert timeline.next_due() is None


def test_a_pod_without_a_runtime_runs_until_it_is_deleted() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(), NOW)
    assert due(timeline, NOW) == [(Act.START, "p", 0)]
    assert due(timeline, NOW + 1e9) == []
    timeline.pod_seen(pod(phase="Running", deleting=True), NOW)
    assert due(timeline, NOW) == [(Act.DELETE, "p", 0)]
    timeline.pod_gone(pod())
    assert len(timeline) == 0


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (pod(phase="Running", fail="9"), [(Act.END, "p", 9)]),
        (pod(phase="Running", runtime="what"), [(Act.END, "p", 1)]),
        (pod(phase="Pending", runtime="what"), [(Act.END, "p", 1)]),
        (pod(phase="Failed", fail="9"), []),
        (pod(phase="Succeeded", runtime="1"), []),
        (pod(phase="Succeeded", deleting=True), [(Act.DELETE, "p", 0)]),
        (pod(phase="Pending", deleting=True), [(Act.DELETE, "p", 0)]),
        (pod(node="elsewhere"), []),
        (pod(node=""), []),
    ],
)
def test_what_is_due_at_once(seen: Pod, expected: list[tuple[Act, str, int]]) -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(seen, NOW)
    assert due(timeline, NOW) == expected


def test_a_restarted_simulation_goes_on_where_the_pod_is() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(phase="Running", started=NOW - 7.0, runtime="10"), NOW)
    assert due(timeline, NOW + 2.0) == []
    assert due(timeline, NOW + 3.0) == [(Act.END, "p", 0)]


def test_what_fails_comes_again_after_a_wait() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(), NOW)
    [action] = timeline.due(NOW)
    timeline.done(action, NOW, worked=False)
    assert timeline.due(NOW) == []
    at = timeline.next_due()
    assert at is not None
    assert NOW < at < NOW + 1.0
    assert [one.act for one in timeline.due(at)] == [Act.START]


def test_a_pod_is_never_acted_on_twice_at_a_time() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(), NOW)
    [start] = timeline.due(NOW)
    timeline.pod_seen(pod(deleting=True), NOW)
    assert timeline.due(NOW) == []
    timeline.done(start, NOW, worked=True)
    assert [one.act for one in timeline.due(NOW)] == [Act.DELETE]


def test_its_own_writes_coming_back_change_nothing() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(runtime="10"), NOW)
    assert due(timeline, NOW) == [(Act.START, "p", 0)]
    timeline.pod_seen(pod(runtime="10", phase="Running", started=NOW), NOW + 0.1)
    assert due(timeline, NOW + 9.9) == []
    assert due(timeline, NOW + 10.0) == [(Act.END, "p", 0)]


def test_a_late_echo_does_not_start_a_pod_again() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(), NOW)
    assert due(timeline, NOW) == [(Act.START, "p", 0)]
    timeline.pod_seen(pod(), NOW + 0.1)
    assert due(timeline, NOW + 1.0) == []


def test_an_end_displaced_by_a_late_start_comes_again() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(runtime="10"), NOW)
    due(timeline, NOW)
    assert due(timeline, NOW + 10) == [(Act.END, "p", 0)]
    timeline.pod_seen(pod(runtime="10", phase="Succeeded", started=NOW), NOW + 10)
    assert timeline.next_due() is None
    timeline.pod_seen(pod(runtime="10", phase="Running", started=NOW), NOW + 11)
    assert due(timeline, NOW + 11) == [(Act.END, "p", 0)]


def test_on_a_dead_node_everything_waits() -> None:
    timeline = Timeline(NODES)
    timeline.pod_seen(pod(runtime="10"), NOW)
    timeline.pod_seen(pod("q", uid="q", node="n2"), NOW)
    timeline.node_died("n1")
    timeline.pod_seen(pod("r", uid="r"), NOW)
    assert due(timeline, NOW + 100.0) == [(Act.START, "q", 0)]
    timeline.node_revived("n1", NOW + 100.0)
    assert due(timeline, NOW + 100.0) in (
        [(Act.START, "p", 0), (Act.START, "r", 0)],
        [(Act.START, "r", 0), (Act.START, "p", 0)],
    )


def test_chance_repeats_in_every_run_but_not_for_every_attempt() -> None:
    def ends(seed: int) -> list[int]:
        timeline = Timeline(NODES, seed=seed)
        codes = []
        for n in range(40):
            one = pod(uid=f"u{n}", runtime="10", fail_rate="0.5")
            timeline.pod_seen(one, NOW)
            due(timeline, NOW)
            [(_, _, code)] = due(timeline, NOW + 10.0)
            codes.append(code)
            timeline.pod_gone(one)
        return codes

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)
    assert {0, 1} == set(ends(1))


def test_no_more_than_asked_for_is_handed_out() -> None:
    timeline = Timeline(NODES)
    for n in range(5):
        timeline.pod_seen(pod(str(n), uid=str(n)), NOW)
    assert len(timeline.due(NOW, limit=3)) == 3
    assert len(timeline.due(NOW, limit=3)) == 2


class Lives(RuleBasedStateMachine):
    """Any order of events: the server's pods end up where their annotations say."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.timeline = Timeline(NODES)
        self.pods: dict[str, dict[str, Any]] = {}
        self.under_way: list[Action] = []
        self.dead: set[str] = set()
        self.made = 0

    def see(self, uid: str) -> None:
        self.timeline.pod_seen(pod(uid, uid=uid, **self.pods[uid]), self.now)

    @rule(node=st.sampled_from(["n1", "n2"]), runtime=st.sampled_from(["0", "5", None]))
    def bind(self, node: str, runtime: str | None) -> None:
        self.made += 1
        self.pods[str(self.made)] = {"node": node, "phase": "Pending"}
        if runtime is not None:
            self.pods[str(self.made)]["runtime"] = runtime
        self.see(str(self.made))

    @rule(index=st.integers(0, 9), what=st.sampled_from(["delete", "fail", "echo"]))
    def change(self, index: int, what: str) -> None:
        if not self.pods:
            return
        uid = sorted(self.pods)[index % len(self.pods)]
        if what == "delete":
            self.pods[uid]["deleting"] = True
        elif what == "fail":
            self.pods[uid]["fail"] = "3"
        self.see(uid)

    @rule(node=st.sampled_from(["n1", "n2"]))
    def kill(self, node: str) -> None:
        self.dead.add(node)
        self.timeline.node_died(node)

    @rule(node=st.sampled_from(["n1", "n2"]))
    def revive(self, node: str) -> None:
        self.dead.discard(node)
        self.timeline.node_revived(node, self.now)

    @rule(seconds=st.floats(0.0, 6.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        taken = self.timeline.due(self.now)
        assert not any(action.pod.spec.node_name in self.dead for action in taken)
        self.under_way += taken

    @rule(index=st.integers(0, 9), worked=st.booleans())
    def finish(self, index: int, worked: bool) -> None:
        if self.under_way:
            self.complete(self.under_way.pop(index % len(self.under_way)), worked)

    def complete(self, action: Action, worked: bool) -> None:
        uid = action.pod.metadata.uid
        assert uid in self.pods, "something was done to a pod that had gone"
        if worked:
            before = self.pods[uid]["phase"]
            if action.act is Act.START:
                assert before == "Pending"
                self.pods[uid] |= {"phase": "Running", "started": self.now}
            elif action.act is Act.END:
                assert before in ("Pending", "Running")
                self.pods[uid]["phase"] = "Failed" if action.exit_code else "Succeeded"
            else:
                assert self.pods[uid].get("deleting")
        self.timeline.done(action, self.now, worked=worked)
        if worked and action.act is Act.DELETE:
            del self.pods[uid]
            self.timeline.pod_gone(action.pod)
        else:
            self.see(uid)

    @invariant()
    def one_action_at_a_time(self) -> None:
        uids = [action.pod.metadata.uid for action in self.under_way]
        assert len(uids) == len(set(uids))

    def teardown(self) -> None:
        """In the end everything happens that was asked for."""
        for node in NODES:
            self.timeline.node_revived(node, self.now)
        for _ in range(10):
            for action in [*self.under_way, *self.timeline.due(self.now)]:
                self.complete(action, True)
            self.under_way = []
            self.now += 30.0
        for wanted in self.pods.values():
            assert not wanted.get("deleting")
            lasts = "runtime" not in wanted and "fail" not in wanted
            assert (wanted["phase"] == "Running") == lasts
        assert len(self.timeline) == len(self.pods)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=examples(150), stateful_step_count=40)
