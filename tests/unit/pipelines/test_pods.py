"""The pods of steps that start together."""

from __future__ import annotations

from typing import Any

from lockstep.api.names import GANG_LABEL, GANG_SIZE_ANNOTATION
from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.compat.membership import gang_of, members_of
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.pods import build
from lockstep.pipelines.core.told import Run, Seen

Json = dict[str, Any]


def started() -> Engine:
    names = {"a": "g", "b": "g", "c": "h", "d": ""}
    retry = {"limit": 1}
    tasks = [{"name": n, "template": "p", "gang": g, "retry": retry} for n, g in names.items()]
    pod = {"pod": {"template": {"spec": {"containers": [{"name": "main"}]}}}}
    templates = {"main": {"graph": {"tasks": tasks}}, "p": pod}
    engine = Engine(Run("r", "n", "uid"), convert({"templates": templates}, PipelineRunSpec), 0.0)
    engine.take()
    return engine


def meta(engine: Engine, name: str) -> Json:
    found: Json = build(engine, engine.nodes[f"main.{name}"])["metadata"]
    return found


def test_steps_with_the_same_word_form_one_gang() -> None:
    engine = started()
    made = {name: meta(engine, name) for name in "abcd"}
    gangs = {n: gang_of(m["labels"], m["annotations"]) for n, m in made.items()}
    sizes = {n: members_of(m["labels"], m["annotations"]) for n, m in made.items()}
    assert gangs["a"] == gangs["b"] != gangs["c"]
    assert sizes == {"a": 2, "b": 2, "c": 1, "d": 0}
    assert gangs["d"] == ""


def test_a_later_try_starts_alone() -> None:
    engine = started()
    engine.observe("main.a", 0, Seen("Failed"), 1.0)
    engine.tick(2.0)
    engine.take()
    again = meta(engine, "a")
    assert GANG_LABEL not in again["labels"]
    assert GANG_SIZE_ANNOTATION not in again["annotations"]
