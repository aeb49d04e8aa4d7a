"""Runs that are refused before anything of them starts, with place and remedy."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.pipelines.core.check import problems

Json = dict[str, Any]
STEP: Json = {"inputs": ["x"], "pod": {"template": {}}}


def told(main: Json, step: Json | None = None, **more: Any) -> list[str]:
    spec = {"templates": {"main": main, "step": STEP if step is None else step}, **more}
    return [str(one) for one in problems(convert(spec, PipelineRunSpec))]


def graph(*tasks: Json) -> Json:
    return {"graph": {"tasks": list(tasks)}}


def task(name: str, **more: Any) -> Json:
    return {"name": name, "template": "step", "arguments": {"x": 1}, **more}


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (
            graph(task("a", after=["b"]), task("b", after=["a"])),
            "wait for each other; take one dependency out",
        ),
        (graph(task("a", after=["a"])), "given 'a -> a'; wait for each other"),
        (graph(task("a", arguments={})), "tasks[0].arguments; template step needs x"),
        (graph(task("a", arguments={"x": 1, "y": 2})), "arguments.y; template step has the input"),
        (graph(task("a", template="other")), "given 'other'; templates there are: main, step"),
        (graph(task("a"), task("a")), "tasks[1].name: given 'a'; another task has that name"),
        (graph(task("a", after=["z"])), "given 'z'; task a waits for it; the graph has a"),
        (graph(task("a", arguments={"x": "${{ tasks.q.outputs.y }}"})), "given 'q'; task a waits"),
        (graph(task("a", when="1 +")), "tasks[0].when; '1 +'"),
        (graph(task("a", arguments={"x": "${{ inputs.n"})), "the expression has no end"),
        ({**graph(), **STEP}, "given 'graph, pod'; a template is only one of these"),
    ],
)
def test_a_graph_with_a_fault_is_refused_with_its_place(main: Json, words: str) -> None:
    assert any(words in one for one in told(main)), told(main)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"pod": {"template": {}, "shared": ["/etc"]}}, "shared[0]: given '/etc'; must be an abs"),
        ({"pod": {"template": {}, "shared": ["/a/../etc"]}}, "must be an absolute path"),
        (
            {"pod": {"template": {}, "outputs": [{"name": "o", "path": "/x/o"}]}},
            "outputs[0].path: given '/x/o'; must lie below one of pod.shared",
        ),
        (
            {"object": {"object": {"apiVersion": "rbac/v1", "kind": "RoleBinding"}}},
            "RoleBinding (rbac/v1): a step may be one of TrainingJob",
        ),
    ],
)
def test_a_step_with_a_fault_is_refused_with_its_place(step: Json, words: str) -> None:
    main = graph({"name": "a", "template": "step"})
    assert any(words in one for one in told(main, step)), told(main, step)


def test_arguments_are_those_that_the_entry_has() -> None:
    main = {"inputs": ["n"], **graph()}
    assert told(main) == ["spec.arguments; give a value for n"]
    found = told(main, arguments={"n": 1, "m": 2})
    assert found == ["spec.arguments.m; main has the inputs n"]


def test_a_sound_run_is_not_refused() -> None:
    assert (
        told({"inputs": ["n"], **graph(task("a"), task("b", after=["a"]))}, arguments={"n": 1})
        == []
    )


def test_a_gang_that_could_never_start_is_refused() -> None:
    one = task("a", gang="g")
    for other, words in (
        (task("b", gang="g", after=["m"]), "b waits for a: they cannot start together"),
        (task("b", gang="g", when="true"), "tasks[2].when; a task of a gang always runs"),
        (task("b", gang="g", keep={}), "tasks[2].keep; a task of a gang always runs"),
        (task("b", gang="g", loop={"items": "[1]"}), "tasks[2].loop; a task of a gang"),
    ):
        (found,) = told(graph(one, task("m", after=["a"]), other))
        assert words in found
    both = {"graph": {"tasks": [one, task("b", gang="g")]}}
    assert told({"graph": {**both["graph"], "parallelism": 1}})[0].endswith(
        "the gang has 2 steps, and parallelism (graph) is less"
    )
    assert "only steps that are pods" in told(both, {"inputs": ["x"], "suspend": {}})[0]
    assert told(both) == []
