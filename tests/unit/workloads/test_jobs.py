"""Jobs whose pods follow one another, from their first pod to their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import timestamp
from lockstep.api.core import AnyObject, Pod
from lockstep.api.wire import convert
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core.job_indexes import read_indexes, show_indexes
from lockstep.workloads.core.jobs import INDEX, decide
from lockstep.workloads.core.plan import Plan, World

Json = dict[str, Any]
NOW = timestamp.parse("2026-03-10T10:30:30Z")
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
Exit = Callable[[int | None], int]


def made(status: Json | None = None, **spec: Any) -> AnyObject:
    meta = {"name": "j", "namespace": "n", "uid": "u"}
    body = {"metadata": meta, "spec": {"template": TEMPLATE, **spec}, "status": status or {}}
    return convert(body, AnyObject)


class Life:
    """A Job with a node that ends each pod at once."""

    def __init__(self, ends: Exit = lambda _: 0, **spec: Any) -> None:
        self.spec, self.ends = spec, ends
        self.status: Json = {}
        self.pods: dict[str, Json] = {}
        self.most, self.now = 0, NOW

    def step(self) -> Plan:
        """Let the controller act once, without a node."""
        pods = [convert(body, Pod) for body in self.pods.values()]
        plan = decide(
            made(self.status, **self.spec), World(pods, names=frozenset(self.pods)), self.now
        )
        for action in plan.actions:
            if isinstance(action, Create):
                name = action.body["metadata"]["name"]
                assert name not in self.pods
                self.pods[name] = {**action.body, "status": {"phase": "Running"}}
            elif isinstance(action, Delete):
                self.pods.pop(action.name, None)
        self.status = plan.status
        running = sum(one["status"]["phase"] == "Running" for one in self.pods.values())
        self.most = max(self.most, running)
        return plan

    def run(self) -> dict[str, str]:
        """Go on until the Job is over; return the reasons of its conditions."""
        for _ in range(200):
            self.step()
            if {"Complete", "Failed"} & self.reasons().keys():
                break
            for body in self.pods.values():
                if body["status"]["phase"] == "Running":
                    body["status"] = self._end(body)
            self.now += 700
        return self.reasons()

    def reasons(self) -> dict[str, str]:
        return {c["type"]: c["reason"] for c in self.status.get("conditions", ())}

    def _end(self, body: Json) -> Json:
        notes = body["metadata"].get("annotations", {})
        code = self.ends(int(notes[INDEX]) if INDEX in notes else None)
        done = {"exitCode": code, "finishedAt": timestamp.show(self.now)}
        container = {"name": "c", "state": {"terminated": done}}
        return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}


@given(st.integers(2, 12), st.integers(1, 5), st.booleans())
def test_all_completions_run_at_most_so_many_at_once(
    completions: int, parallel: int, indexed: bool
) -> None:
    parallel = min(parallel, completions - 1)
    mode = "Indexed" if indexed else "NonIndexed"
    life = Life(completions=completions, parallelism=parallel, completionMode=mode)
    assert life.run()["Complete"] == "CompletionsReached"
    assert (life.status["succeeded"], life.most, len(life.pods)) == (
        completions,
        parallel,
        completions,
    )
    if indexed:
        assert read_indexes(life.status["completedIndexes"]) == set(range(completions))


INDEXED: Json = {"completions": 4, "parallelism": 2, "completionMode": "Indexed"}
FAIL_JOB = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
FAIL_INDEX = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
ENDS: list[tuple[str, Json, Exit, tuple[str, str]]] = [
    (
        "limit",
        {"completions": 3, "backoffLimit": 2},
        lambda _: 1,
        ("Failed", "BackoffLimitExceeded"),
    ),
    (
        "index",
        {**INDEXED, "backoffLimitPerIndex": 1},
        lambda i: int(i == 1),
        ("Failed", "FailedIndexes"),
    ),
    (
        "most",
        {**INDEXED, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
        lambda _: 1,
        ("Failed", "MaxFailedIndexesExceeded"),
    ),
    (
        "policy",
        {**INDEXED, "podFailurePolicy": {"rules": [FAIL_JOB]}},
        lambda i: 42 * (i == 0),
        ("Failed", "PodFailurePolicy"),
    ),
    (
        "policy by index",
        {**INDEXED, "backoffLimitPerIndex": 5, "podFailurePolicy": {"rules": [FAIL_INDEX]}},
        lambda i: 42 * (i == 0),
        ("Failed", "FailedIndexes"),
    ),
    (
        "success",
        {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "0-3", "succeededCount": 2}]}},
        lambda _: 0,
        ("Complete", "SuccessPolicy"),
    ),
    (
        "deadline",
        {"completions": 9, "activeDeadlineSeconds": 1000},
        lambda _: 0,
        ("Failed", "DeadlineExceeded"),
    ),
]


@pytest.mark.parametrize(("spec", "ends", "end"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS])
def test_a_job_ends_for_the_reason(spec: Json, ends: Exit, end: tuple[str, str]) -> None:
    life = Life(ends, **spec)
    assert life.run()[end[0]] == end[1]
    assert life.status["active"] == 0


def test_a_failed_index_leaves_the_others_to_finish() -> None:
    life = Life(lambda i: int(i == 1), **INDEXED, backoffLimitPerIndex=1)
    life.run()
    told = life.status
    assert (told["completedIndexes"], told["failedIndexes"], told["failed"]) == ("0,2,3", "1", 2)


def test_ignored_failures_count_for_no_limit() -> None:
    rule = {**FAIL_JOB, "action": "Ignore"}
    codes = iter([42, 42, 42])
    life = Life(
        lambda _: next(codes, 0),
        completions=2,
        backoffLimit=0,
        podFailurePolicy={"rules": [rule]},
    )
    assert "Complete" in life.run()


def test_a_failure_is_followed_by_a_pause_that_doubles() -> None:
    life = Life(lambda _: 1, completions=2)
    life.step()
    (body,) = life.pods.values()
    body["status"] = life._end(body)
    assert life.step().again == pytest.approx(10, abs=1)
    life.now += 10
    assert any(isinstance(one, Create) for one in life.step().actions)


def test_suspension_ends_the_pods_and_resuming_starts_anew() -> None:
    life = Life(**INDEXED)
    life.step()
    life.spec["suspend"] = True
    life.step()
    assert (life.pods, life.reasons(), "startTime" in life.status) == (
        {},
        {"Suspended": "JobSuspended"},
        False,
    )
    life.spec["suspend"] = False
    life.step()
    assert (len(life.pods), life.reasons()["Suspended"]) == (2, "JobResumed")


def test_a_finished_job_goes_after_its_time() -> None:
    life = Life(completions=2, ttlSecondsAfterFinished=30)
    life.run()
    assert life.step().again == pytest.approx(30, abs=1)
    life.now += 31
    (action,) = life.step().actions
    assert isinstance(action, Delete)
    assert action.name == "j"


def test_pods_being_deleted_are_waited_for_under_the_policy() -> None:
    spec = {**INDEXED, "podReplacementPolicy": "Failed"}
    leaving = {"deletionTimestamp": timestamp.show(NOW), "annotations": {INDEX: "0"}}
    body = {"metadata": {"name": "p", "uid": "p", **leaving}, "status": {"phase": "Running"}}
    plan = decide(made(**spec), World([convert(body, Pod)]), NOW)
    made_for = [
        one.body["metadata"]["annotations"] for one in plan.actions if isinstance(one, Create)
    ]
    assert [notes[INDEX] for notes in made_for] == ["1"]


@pytest.mark.parametrize(
    "spec",
    [{"completions": 2, "parallelism": 2}, {"parallelism": 3}, {}],
)
def test_a_job_that_is_a_gang_is_left_alone(spec: Json) -> None:
    plan = decide(made({"active": 1}, **spec), World(), NOW)
    assert (plan.actions, plan.status) == ([], {"active": 1})


@given(st.sets(st.integers(0, 40)))
def test_indexes_survive_their_text(indexes: set[int]) -> None:
    assert read_indexes(show_indexes(indexes)) == indexes


@pytest.mark.parametrize(
    ("indexes", "text"), [({0, 1}, "0,1"), ({0, 1, 2, 5}, "0-2,5"), (set(), "")]
)
def test_three_indexes_in_a_row_are_a_span(indexes: set[int], text: str) -> None:
    assert show_indexes(indexes) == text
