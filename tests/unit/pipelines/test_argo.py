"""Argo's conditions and expressions as CEL, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.compat.argo import conditions, config_maps, expressions
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


def test_a_time_out_from_no_input_is_refused_by_name() -> None:
    main = {"name": "main", "container": {"image": "x"}, "timeout": "{{workflow.name}}"}
    with pytest.raises(Refused, match="timeout"):
        spec({"entrypoint": "main", "templates": [main]})


SEEN: dict[str, Any] = {
    "inputs": {"n": "7", "word": "a b", "yes": "true", "json": '{"a": [1, {"b": 5}]}'},
    "tasks": {
        "a": {"state": "Failed", "outputs": {"result": "heads"}, "exitCode": 3},
        "b": {"state": "Skipped", "outputs": {}},
    },
    "item": {"k": 3},
    "run": {
        "name": "wf",
        "arguments": {"who": "world"},
        "status": "Running",
        "outputs": {"known": "yes"},
    },
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
    found, condition = conditions.depends(depends, "depends")
    assert found == names
    assert (evaluate(condition, SEEN) if condition else None) is holds


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("{{workflow.name}}-{{item.k}}", "wf-3"),
        ("{{workflow.parameters.who}} ${{ kept", "world ${{ kept"),
        ("{{=asInt(inputs.parameters.n) * 2}}", 14),
        ("{{=jsonpath(inputs.parameters.json, '$.a[1].b')}}", 5),
        ("{{=tasks.b.outputs.parameters.x ?? 'none'}}", "none"),
        ("{{tasks.a.exitCode}} {{workflow.outputs.parameters.known}}", "3 yes"),
    ],
)
def test_texts_are_filled_in(given: str, shown: Any) -> None:
    assert render(expressions.text(given, "args"), SEEN) == shown


LOOPED = {"name": "s", "template": "a", "withItems": [1, 2]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"synchronization": {"mutexes": [{"name": "a", "database": True}]}},
            "spec.synchronization.mutexes.database",
        ),
        ({"entrypoint": "nope"}, "spec.entrypoint"),
        (
            {
                "templates": [
                    {
                        "name": "a",
                        "daemon": True,
                        "container": {"command": ["x"]},
                        "outputs": {"parameters": [{"name": "o", "valueFrom": {"path": "/o/o"}}]},
                    }
                ]
            },
            "spec.templates[a].outputs",
        ),
        ({"podGC": {"strategy": "Never"}}, "spec.podGC.strategy"),
        ({"hooks": {"running": {"template": "a", "expression": "true"}}}, "spec.hooks.running"),
        (
            {
                "templates": [
                    {
                        "name": "a",
                        "containerSet": {
                            "containers": [
                                {"name": "x", "command": ["x"], "dependencies": ["y"]},
                                {"name": "y", "command": ["y"], "dependencies": ["x"]},
                            ]
                        },
                    }
                ]
            },
            "spec.templates[a].containerSet.containers",
        ),
        ({"templates": [{"name": "a", "http": {}}]}, "spec.templates[a].http"),
        ({"templates": [{"name": "a"}]}, "spec.templates[a]"),
        (
            {"templates": [{"name": "a", "container": {"args": ["{{nope.x}}"]}}]},
            "spec.templates[a].spec.containers[0].args[0]",
        ),
        (
            {
                "templates": [
                    {"name": "a", "steps": [[{**LOOPED, "hooks": {"exit": {"template": "a"}}}]]}
                ]
            },
            "spec.templates[a].steps[0][0].hooks",
        ),
        (
            {"templates": [{"name": "a", "script": {"command": ["lua"], "source": "1"}}]},
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


def pod(template: dict[str, Any], **workflow: Any) -> dict[str, Any]:
    made = spec({"entrypoint": "a", "templates": [{"name": "a", **template}], **workflow})
    found: dict[str, Any] = made["templates"]["a"]["pod"]
    return found


def test_an_output_beside_the_files_of_an_image_is_copied() -> None:
    outputs = {"parameters": [{"name": "o", "valueFrom": {"path": "/file"}}]}
    made = pod({"container": {"command": ["true"]}, "outputs": outputs})
    assert made["outputs"][0]["path"].startswith("/lockstep-argo/copies/")
    assert made["shared"] == ["/lockstep-argo"]
    assert "cp -rL /file" in made["template"]["spec"]["containers"][0]["command"][2]


def test_a_step_makes_directories_where_images_have_none() -> None:
    outputs = {"artifacts": [{"name": "o", "path": "/mnt/out/part.json"}]}
    inputs = {"artifacts": [{"name": "i", "path": "/mnt/in/part.json"}]}
    made = pod({"container": {"command": ["true"]}, "inputs": inputs, "outputs": outputs})
    assert made["shared"] == ["/mnt"]


def test_an_output_in_the_steps_volume_is_read_there() -> None:
    outputs = {"parameters": [{"name": "o", "valueFrom": {"path": "/made/o"}}]}
    mounts = [{"name": "w", "mountPath": "/made"}]
    made = pod({"container": {"command": ["true"], "volumeMounts": mounts}, "outputs": outputs})
    assert made["shared"] == []
    assert made["outputs"][0]["path"] == "/made/o"


def test_locks_patches_and_claims_are_handed_on() -> None:
    made = spec(
        {
            "entrypoint": "a",
            "synchronization": {"semaphores": [{"configMapKeyRef": {"name": "m", "key": "k"}}]},
            "podSpecPatch": "{priority: 1}",
            "volumeClaimTemplates": [{"metadata": {"name": "work"}, "spec": {}}],
            "podGC": {"strategy": "OnWorkflowSuccess"},
            "templates": [
                {
                    "name": "a",
                    "synchronization": {"mutex": {"name": "{{workflow.uid}}"}},
                    "container": {"command": ["true"]},
                }
            ],
        }
    )
    assert made["templates"]["lockstep-main"]["locks"][0]["limitFrom"] == "m/k"
    assert made["templates"]["a"]["locks"] == [{"name": "mutex/${{ run.uid }}"}]
    assert made["templates"]["a"]["pod"]["patch"] == ["{priority: 1}"]
    assert made["sweep"]["strategy"] == "OnRunSuccess"
    volume = made["templates"]["a"]["pod"]["template"]["spec"]["volumes"][0]
    assert volume["persistentVolumeClaim"]["claimName"] == "${{ run.name }}-work"


def test_parameters_of_config_maps_are_filled_in_or_refused() -> None:
    source = {"configMapKeyRef": {"name": "m", "key": "k"}}
    tree = {"arguments": {"parameters": [{"name": "p", "valueFrom": source}]}}
    assert config_maps.named(tree) == {"m"}
    found = config_maps.filled(tree, {"m": {"k": "v"}})
    assert found["arguments"]["parameters"] == [{"name": "p", "value": "v"}]
    with pytest.raises(Refused, match="configMapKeyRef"):
        config_maps.filled(tree, {})


def test_a_target_leaves_out_what_it_does_not_need() -> None:
    task = {"template": "b"}
    names = {"a": [], "c": ["a"], "d": ["a"]}
    dag = {
        "target": "{{workflow.parameters.to}}",
        "tasks": [{**task, "name": n, "dependencies": before} for n, before in names.items()],
    }
    made = spec(
        {
            "entrypoint": "a",
            "arguments": {"parameters": [{"name": "to", "value": "c"}]},
            "templates": [{"name": "a", "dag": dag}, {"name": "b", "suspend": {}}],
        }
    )
    assert [one["name"] for one in made["templates"]["a"]["graph"]["tasks"]] == ["a", "c"]


def test_an_artefact_keeps_its_mode() -> None:
    one = {"name": "a", "path": "/in/a", "mode": 0o755, "raw": {"data": "x"}}
    made = pod({"container": {"command": ["true"]}, "inputs": {"artifacts": [one]}})
    assert made["fetch"][0]["mode"] == 0o755


def test_a_store_with_keys_of_its_own_is_refused() -> None:
    s3 = {"bucket": "b", "key": "k", "endpoint": "minio:9000"}
    inputs = {"artifacts": [{"name": "a", "path": "/in/a", "s3": s3}]}
    with pytest.raises(Refused) as refused:
        pod({"container": {"command": ["true"]}, "inputs": inputs})
    assert refused.value.problem.field.endswith(".s3.endpoint")
