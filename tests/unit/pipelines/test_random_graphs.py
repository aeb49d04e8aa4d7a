"""Whatever the graph, the failures and the order of events: the rules of a run hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.told import Ensure, Run, Seen

Json = dict[str, Any]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Json, frozenset[str]]:
    """A graph with some of its tasks, which fail."""
    count = draw(st.integers(1, 10))
    names = [f"t{i}" for i in range(count)]
    tasks = []
    for i, name in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3)) if i else []
        loop = draw(st.integers(0, 3)) if draw(st.integers(0, 4)) == 0 else None
        task: Json = {"name": name, "template": "step", "after": before}
        if loop is not None:
            task["loop"] = {"items": str([*range(loop)]), "parallelism": draw(st.integers(0, 2))}
        if draw(st.integers(0, 5)) == 0:
            task["exit"] = True
        tasks.append(task)
    graph = {
        "tasks": tasks,
        "failFast": draw(st.booleans()),
        "parallelism": draw(st.integers(0, 3)),
    }
    failing = frozenset(draw(st.lists(st.sampled_from(names), unique=True, max_size=3)))
    return graph, failing


def engine(graph: Json, records: Any = None, parallelism: int = 0) -> Engine:
    templates = {"main": {"graph": graph}, "step": {"pod": {"template": {}}}}
    spec = convert({"templates": templates, "parallelism": parallelism}, PipelineRunSpec)
    return Engine(Run("r", "default", "u"), spec, 0.0, records=records)


def interpret(graph: Json, failing: frozenset[str]) -> tuple[dict[str, str], bool]:
    """Return the end of each task as a plain walk in order has it, without failing fast."""
    ends: dict[str, str] = {}
    for task in graph["tasks"]:
        good = all(ends[before] == "Succeeded" for before in task["after"])
        empty = "loop" in task and task["loop"]["items"] == "[]"
        if not (good or task.get("exit")):
            ends[task["name"]] = "Omitted"
        elif task["name"] in failing and not empty:
            ends[task["name"]] = "Failed"
        else:
            ends[task["name"]] = "Succeeded"
    return ends, "Failed" not in ends.values()


@settings(max_examples=examples(300), deadline=None)
@given(drawn=graphs(), data=st.data())
def test_rules_hold_over_random_graphs_failures_and_restarts(
    drawn: tuple[Json, frozenset[str]], data: st.DataObject
) -> None:
    graph, failing = drawn
    most = data.draw(st.integers(0, 3))
    running = engine(graph, parallelism=most)
    before = {task["name"]: task["after"] for task in graph["tasks"]}
    open_: set[str] = set()
    succeeded: set[str] = set()
    for now in range(1, 200):
        if data.draw(st.integers(0, 4)) == 0:
            records = {name: node.status() for name, node in running.nodes.items()}
            running = engine(graph, records, most)
            made = {a.step for a in running.take() if isinstance(a, Ensure)}
            assert made >= open_, "a step that ran is forgotten"
            assert not made & succeeded, "a step that succeeded runs again"
            open_ = made
        for action in running.take():
            name = action.step.split(".")[1]
            assert action.step not in open_ | succeeded, "a step starts twice"
            nodes = (running.nodes[f"main.{b}"] for b in before[name])
            assert all(node.over for node in nodes), "a step starts before what it depends on"
            open_.add(action.step)
        assert most == 0 or len(open_) <= most
        if not open_:
            break
        step = data.draw(st.sampled_from(sorted(open_)))
        open_.remove(step)
        bad = step.split(".")[1] in failing
        if not bad:
            succeeded.add(step)
        running.observe(step, 0, Seen("Failed" if bad else "Succeeded"), float(now))
    assert running.root.over
    wanted, good = interpret(graph, failing)
    assert (running.root.phase == "Succeeded") == good
    if not graph["failFast"]:
        assert {n: running.nodes[f"main.{n}"].phase for n in wanted} == wanted
    for task in graph["tasks"]:
        if task.get("exit"):
            assert running.nodes[f"main.{task['name']}"].phase in ("Succeeded", "Failed")
