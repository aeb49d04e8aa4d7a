"""What KFP's compiler writes, as runs of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.api.pipeline import PipelineRunSpec
from lockstep.api.wire import convert
from lockstep.compat.kfp.placeholders import expression
from lockstep.compat.kfp.translate import translate
from lockstep.compat.translation import Refused
from lockstep.pipelines.core.check import problems
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.pods import build
from lockstep.pipelines.core.told import Ensure, Run, Seen
from lockstep.pipelines.core.values import evaluate

Json = dict[str, Any]


def pipeline(task: Json, container: Json, **inputs: Json) -> Json:
    """Return a compiled pipeline with an input ``name`` and one task."""
    component = {"executorLabel": "exec", "inputDefinitions": inputs}
    parameter = {"name": {"parameterType": "STRING", "defaultValue": "ann"}}
    return {
        "schemaVersion": "2.1.0",
        "pipelineInfo": {"name": "p"},
        "root": {
            "inputDefinitions": {"parameters": parameter},
            "dag": {"tasks": {"say": {"componentRef": {"name": "comp"}, **task}}},
        },
        "components": {"comp": component},
        "deploymentSpec": {"executors": {"exec": {"container": {"image": "i", **container}}}},
    }


def pod(tree: Json) -> Json:
    """Return the pod of the pipeline's task."""
    spec = convert(translate(tree), PipelineRunSpec)
    assert problems(spec) == []
    engine = Engine(Run("r", "n", "uid"), spec, 0.0)
    engine.take()
    return build(engine, engine.nodes["main.say"])


TEXT = {"parameters": {"text": {"parameterType": "STRING"}}}
CHANNEL = {"pipelinechannel--name": {"componentInputParameter": "name"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello, {{$.inputs.parameters['pipelinechannel--name']}}!", "hello, ann!"),
        ("{{$.pipeline_task_name}} of {{$.pipeline_job_name}}", "say of r"),
        ("{{$.pipeline_task_uuid}}", "uid-say"),
        ("plain ${{ text }}", "plain ${{ text }}"),
    ],
)
def test_a_constant_may_hold_other_inputs_of_its_task(text: str, said: str) -> None:
    given = {"text": {"runtimeValue": {"constant": text}}, **CHANNEL}
    args = ["{{$.inputs.parameters['text']}}"]
    made = pod(pipeline({"inputs": {"parameters": given}}, {"args": args}, **TEXT))
    assert made["spec"]["containers"][0]["args"] == [said]


def test_an_executors_number_may_only_be_a_task_input() -> None:
    given = {"cpu": {"runtimeValue": {"constant": "500m"}}}
    resources = {"resources": {"resourceCpuLimit": "{{$.inputs.parameters['cpu']}}"}}
    made = pod(pipeline({"inputs": {"parameters": given}}, resources))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("task", "container", "words"),
    [
        ({"hooks": {}}, {}, "hooks; it is not served"),
        ({}, {"args": ["{{$.nothing}}"]}, "this placeholder is not known"),
        (
            {},
            {"resources": {"accelerator": {"resourceType": "{{$.inputs.parameters['t']}}"}}},
            "name it by a constant",
        ),
    ],
)
def test_what_is_not_served_is_refused_by_name(task: Json, container: Json, words: str) -> None:
    with pytest.raises(Refused) as refused:
        translate(pipeline(task, container))
    assert words in str(refused.value.problem)


def test_artefacts_are_handed_over_as_a_list() -> None:
    container = {"args": ["{{$.inputs.artifacts['d']}}"]}
    artefacts = {"artifacts": {"d": {"artifactType": {"schemaTitle": "system.Dataset"}}}}
    tree = pipeline({}, container, **artefacts)
    tree["components"]["source"] = {"executorLabel": "load"}
    load = {"importer": {"artifactUri": {"constant": "s3://b/d"}}}
    tree["deploymentSpec"]["executors"]["load"] = load
    tree["root"]["dag"]["tasks"] = {
        "load": {"componentRef": {"name": "source"}},
        "say": {
            "componentRef": {"name": "comp"},
            "inputs": {
                "artifacts": {
                    "d": {
                        "taskOutputArtifact": {
                            "producerTask": "load",
                            "outputArtifactKey": "artifact",
                        }
                    }
                }
            },
        },
    }
    (word,) = pod(tree)["spec"]["containers"][0]["args"]
    assert word.startswith('[{"metadata": {}, "name": "artifact"')
    assert '"uri": "s3://b/d"' in word


def test_a_loop_collects_what_its_conditions_let_through() -> None:
    made = {"runtimeValue": {"constant": "x"}}
    task = {"componentRef": {"name": "one"}, "inputs": {"parameters": {"text": made}}}
    tree = pipeline(task, {})
    name = "inputs.parameter_values['item'] == 'b'"
    inner = {
        "componentRef": {"name": "some"},
        "inputs": {"parameters": {"item": {"componentInputParameter": "item"}}},
        "triggerPolicy": {"condition": name},
    }
    given = {"parameters": {"item": {"parameterType": "STRING"}}}

    def through(subtask: str) -> Json:
        source = {"producerSubtask": subtask, "outputParameterKey": "o"}
        return {"parameters": {"o": {"valueFromParameter": source}}}

    tree["components"] = {
        "loop": {"inputDefinitions": given, "dag": {"tasks": {"maybe": inner}}},
        "some": {"inputDefinitions": given, "executorLabel": "exec"},
    }
    tree["components"]["loop"]["dag"]["outputs"] = through("maybe")
    tree["root"]["dag"]["tasks"] = {
        "each": {
            "componentRef": {"name": "loop"},
            "parameterIterator": {"items": {"raw": '["a", "b"]'}, "itemInput": "item"},
        }
    }
    engine = Engine(Run("r", "n", "uid"), convert(translate(tree), PipelineRunSpec), 0.0)
    engine.take()
    engine.observe("main.each.1.maybe", 0, Seen("Succeeded", outputs={"o": 7}), 1.0)
    assert engine.nodes["main.each"].outputs == {"o": [7]}


def test_loops_within_loops_hand_over_one_list() -> None:
    component = {"inputDefinitions": {"artifacts": {"d": {}}}}
    one = {"name": "d", "uri": "s3://b/d", "type": "system.Dataset", "metadata": {}}
    for given, count in ((one, 1), ([one, one], 2), ([[one], [one, one]], 3)):
        code = expression(".inputs.artifacts['d']", "at", component)
        assert len(json.loads(evaluate(code, {"inputs": {"d": given}}))) == count


LOOPS = Path(__file__).parents[2] / "support" / "kfp" / "loops.yaml"


def test_texts_in_loops_see_the_items_around_them() -> None:
    """What the SDK compiles of texts such as ``f"{x.a}/{y}"`` names values that no graph gets."""
    spec = convert(translate(yaml.safe_load(LOOPS.read_text())), PipelineRunSpec)
    engine = Engine(Run("loops", "default", "u"), spec, 0.0)
    said: list[str] = []
    while actions := engine.take():
        for action in actions:
            assert isinstance(action, Ensure)
            node = engine.nodes[action.step]
            text = node.inputs.get("text")
            said += [text] if text else []
            outputs = {"Output": ["a", "b"] if text is None else text}
            engine.observe(node.id, node.attempt, Seen("Succeeded", outputs=outputs), 1.0)
    assert engine.root.phase == "Succeeded", engine.root.message
    words = ["2a", "2b", "end", "p+b+p/b", "p/a", "p/b", "q+b+q/b", "q/a", "q/b"]
    assert sorted(said) == words
