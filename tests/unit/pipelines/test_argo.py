"""Argo's conditions and expressions as CEL, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.compat.argo import expressions
from lockstep.compat.argo.translate import spec
from lockstep.compat.translation import Refused
from lockstep.pipelines.core.values import evaluate, render


def test_an_exit_hook_is_the_exit_handler() -> None:
    main = {"name": "main", "suspend": {}}
    end = {"name": "end", "suspend": {"duration": "1"}}
    plain: dict[str, Any] = {"entrypoint": "main", "templates": [main, end]}
    hooked = spec({**plain, "hooks": {"exit": {"template": "end"}}})
    assert hooked == spec({**plain, "onExit": "end"})
    with pytest.raises(Refused, match=r"spec\.hooks\.running"):
        spec({**plain, "hooks": {"running": {"template": "end", "expression": "true"}}})


def test_a_time_out_that_is_an_expression_is_refused_by_name() -> None:
    main = {"name": "main", "container": {"image": "x"}, "timeout": "{{inputs.parameters.t}}"}
    with pytest.raises(Refused, match="timeout"):
        spec({"entrypoint": "main", "templates": [main]})


SEEN: dict[str, Any] = {
    "inputs": {"n": "7", "word": "a b", "yes": "true"},
    "tasks": {"a": {"state": "Failed", "outputs": {"result": "heads"}}, "b": {"state": "Skipped"}},
    "item": {"k": 3},
    "run": {"name": "wf", "arguments": {"who": "world"}, "status": "Running"},
}


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("{{steps.a.outputs.result}} == heads", True),
        ("{{steps.a.outputs.result}} != heads", False),
        ("'{{inputs.parameters.word}}' == 'a b'", True),
        ("{{inputs.parameters.n}} > 10", False),
        ("!{{inputs.parameters.yes}}", False),
        ("{{inputs.parameters.n}} >= 7 && {{inputs.parameters.yes}}", True),
        ("( {{inputs.parameters.n}} == 7 || x == y ) && !(a == b)", True),
        ('"{{inputs.parameters.word}}" =~ "^a"', True),
        ("{{=asInt(inputs.parameters.n) + 1 > 7 and item.k == '3'}}", True),
    ],
)
def test_conditions_mean_what_they_mean_to_argo(when: str, holds: bool) -> None:
    assert evaluate(expressions.when(when, "when"), SEEN) is holds


@pytest.mark.parametrize(
    ("depends", "names", "holds"),
    [
        ("a && b", ["a", "b"], None),
        ("a.Failed && b", ["a", "b"], True),
        ("a.Succeeded || !b.Failed", ["a", "b"], True),
        ("(a.Succeeded && b)", ["a", "b"], False),
    ],
)
def test_dependencies_are_conditions_on_states(
    depends: str, names: list[str], holds: bool | None
) -> None:
    found, condition = expressions.depends(depends, "depends")
    assert found == names
    assert (evaluate(condition, SEEN) if condition else None) is holds


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("{{workflow.name}}-{{item.k}}", "wf-3"),
        ("{{workflow.parameters.who}} ${{ kept", "world ${{ kept"),
        ("{{=asInt(inputs.parameters.n) * 2}}", 14),
    ],
)
def test_texts_are_filled_in(given: str, shown: Any) -> None:
    assert render(expressions.text(given, "args"), SEEN) == shown


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"synchronization": {}}, "spec.synchronization"),
        ({"entrypoint": "nope"}, "spec.entrypoint"),
        ({"templates": [{"name": "a", "daemon": True, "container": {}}]}, "spec.templates[a].dae"),
        ({"templates": [{"name": "a", "http": {}}]}, "spec.templates[a].http"),
        ({"templates": [{"name": "a"}]}, "spec.templates[a]"),
        (
            {"templates": [{"name": "a", "container": {"args": ["{{nope.x}}"]}}]},
            "spec.templates[a].spec.containers[0].args[0]",
        ),
        (
            {
                "templates": [
                    {"name": "a", "steps": [[{"name": "s", "hooks": {}, "template": "a"}]]}
                ]
            },
            "spec.templates[a].steps[0][0].hooks",
        ),
        (
            {"templates": [{"name": "a", "script": {"command": ["node"], "source": "1"}}]},
            "spec.templates[a].script.command",
        ),
        ({"workflowTemplateRef": {"name": "none"}}, "spec.workflowTemplateRef"),
    ],
)
def test_what_is_not_served_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    base = {"entrypoint": "a", "templates": [{"name": "a", "container": {"command": ["true"]}}]}
    with pytest.raises(Refused) as refused:
        spec({**base, **change})
    assert refused.value.problem.field.startswith(field)
