"""Locks between runs, daemons, changes to pods, pods that may go, JSON paths."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import Pod
from lockstep.api.pipeline import PipelineRun, PipelineRunSpec, StepStatus
from lockstep.api.wire import convert
from lockstep.pipelines.core import jsonpath
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.locks import Locks
from lockstep.pipelines.core.patching import merged
from lockstep.pipelines.core.sweeping import doomed
from lockstep.pipelines.core.told import Ensure, Remove, Run, Seen
from lockstep.pipelines.core.values import BadExpression


def run(uid: str, locks: Locks, **spec: Any) -> Engine:
    step = {"pod": {"template": {}}, "locks": [{"name": "m"}]}
    task = {"name": "s", "template": "step"}
    templates = {"main": {"graph": {"tasks": [task]}}, "step": step}
    made = convert({"templates": templates, **spec}, PipelineRunSpec)
    return Engine(Run(uid, "default", uid), made, 0.0, locks=locks)


def test_runs_take_turns_with_a_lock_in_order_of_asking() -> None:
    locks = Locks()
    runs = [run(name, locks) for name in "abc"]
    assert [bool(one.take()) for one in runs] == [True, False, False]
    assert "waits for default/m" in runs[1].nodes["main.s"].message
    runs[0].observe("main.s", 0, Seen("Succeeded"), 1.0)
    for one in (runs[2], runs[1]):
        one.tick(2.0)
    assert [bool(one.take()) for one in runs] == [False, True, False]


def test_a_stopped_run_releases_its_locks_and_its_turn() -> None:
    locks = Locks()
    first, second, third = (run(name, locks) for name in "abc")
    second.stop("enough", 1.0)
    first.stop("enough", 1.0)
    assert second.root.over
    third.tick(2.0)
    assert third.take() == [Ensure("main.s", 0)]
    assert [*locks.held] == ["default/m"]


def test_a_continuing_run_keeps_its_locks_over_a_restart() -> None:
    locks = Locks()
    first = run("a", locks)
    records = {name: node.status() for name, node in first.nodes.items()}
    assert records["main.s"].locks == ["default/m"]
    after = Locks()
    after.restore("a/main.s", records["main.s"].locks)
    second = run("b", after)
    assert second.take() == []
    assert second.blocked


def test_a_missing_limit_fails_the_step_with_its_place() -> None:
    lock = {"name": "s", "limitFrom": "map/key"}
    templates = {"main": {"pod": {"template": {}}, "locks": [lock]}}
    spec = convert({"templates": templates}, PipelineRunSpec)
    made = Engine(Run("r", "default", "u"), spec, 0.0)
    assert "map/key" in made.root.message
    assert Engine(Run("r", "default", "u"), spec, 0.0, limits={"map/key": 1}).take()


def test_a_daemon_lets_others_continue_and_ends_with_its_graph() -> None:
    tasks = [
        {"name": "d", "template": "daemon"},
        {"name": "c", "template": "pod", "arguments": {"ip": "${{ tasks.d.outputs.ip }}"}},
    ]
    templates = {
        "main": {"graph": {"tasks": tasks}},
        "daemon": {"pod": {"template": {}, "daemon": True}},
        "pod": {"inputs": ["ip"], "pod": {"template": {}}},
    }
    made = Engine(Run("r", "default", "u"), convert({"templates": templates}, PipelineRunSpec), 0.0)
    made.take()
    made.observe("main.d", 0, Seen("Running"), 1.0)
    assert made.take() == []
    made.observe("main.d", 0, Seen("Running", address="127.0.0.9"), 2.0)
    assert made.take() == [Ensure("main.c", 0)]
    assert made.nodes["main.c"].inputs == {"ip": "127.0.0.9"}
    made.observe("main.c", 0, Seen("Succeeded"), 3.0)
    assert made.take() == [Remove("main.d", 0)]
    assert made.root.phase == "Succeeded"


def test_changes_reach_things_by_their_names() -> None:
    spec = {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}], "x": 1}
    change = {
        "containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}, {"name": "more"}],
        "x": None,
    }
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert merged(spec, change) == {"containers": [{"name": "main", "env": env}, {"name": "more"}]}
    with pytest.raises(BadExpression, match="needs name"):
        merged(spec, {"containers": [{"image": "x"}]})


@pytest.mark.parametrize(
    ("strategy", "labels", "names"),
    [
        ("OnPodCompletion", {}, ["bad", "good"]),
        ("OnPodSuccess", {}, ["good"]),
        ("OnPodCompletion", {"of": "good"}, ["good"]),
        ("OnRunCompletion", {}, []),
    ],
)
def test_pods_go_once_their_ends_are_on_record(
    strategy: str, labels: dict[str, str], names: list[str]
) -> None:
    sweep = {"strategy": strategy, "labels": labels}
    tree = {"metadata": {"name": "r"}, "spec": {"templates": {}, "sweep": sweep}}
    end = "2026-01-01T00:00:00Z"
    steps = {
        "good": StepStatus(phase="Succeeded", finished_at=end),
        "bad": StepStatus(phase="Failed", finished_at=end),
        "late": StepStatus(phase="Running"),
    }
    phases = {"good": "Succeeded", "bad": "Failed", "late": "Succeeded"}
    pods = [
        convert(
            {
                "metadata": {
                    "name": name,
                    "labels": {"of": name},
                    "annotations": {"lockstep.dev/step": name},
                },
                "status": {"phase": phase},
            },
            Pod,
        )
        for name, phase in phases.items()
    ]
    found, again = doomed(convert(tree, PipelineRun), steps, pods, 4e9)
    assert sorted(found) == names
    assert again is None
    soon = 1767225600.0 + 1
    assert doomed(convert(tree, PipelineRun), steps, pods, soon)[0] == []


TEXT = '{"a": [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}], "b": {"c": 3}}'


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.b.c", 3),
        ("$['b']['c']", 3),
        ("$.a[1].s", "y"),
        ("$.a[-1].n", 2),
        ("$.a[*].n", [1, 2]),
        ("$.a[0:1].s", ["x"]),
        ('$.a[?(@.s=="y")].n', [2]),
        ("$.a[?(@.n>=1 && @.n<2)].s", ["x"]),
    ],
)
def test_paths_find_what_they_name(path: str, found: Any) -> None:
    assert jsonpath.find(TEXT, path) == found


@pytest.mark.parametrize("path", ["b", "$.nope", "$..a", "$.a[?(@.n)]", "$" + ".a" * 300])
def test_paths_that_find_nothing_or_are_not_served_say_so(path: str) -> None:
    with pytest.raises(jsonpath.BadPath, match="jsonpath"):
        jsonpath.find(TEXT, path)
