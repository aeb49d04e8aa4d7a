"""LLMInferenceServices and LeaderWorkerSets as InferenceServices."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.compat.kserve import llm
from lockstep.compat.kserve.objects import InferenceService, Spec
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.translate import Component, predictor
from lockstep.compat.leaderworkerset import translate as lws

Json = dict[str, Any]
MODEL = {"uri": "pvc://models/llama", "name": "llama"}
BOX = {"name": "main", "image": "i", "command": ["serve"]}


def obj(kind: str, **spec: Any) -> AnyObject:
    return AnyObject(metadata=ObjectMeta(name="chat", namespace="n", uid="u"), kind=kind, spec=spec)


def component(made: Json) -> Component:
    """Return what serves *made*."""
    meta = ObjectMeta(name=made["name"], namespace="n", annotations=made["annotations"])
    return predictor(InferenceService(metadata=meta, spec=Spec(**made["spec"])), [])


def llms(**spec: Any) -> list[Json]:
    return llm.services(obj("LLMInferenceService", **{"model": MODEL, **spec}))


def test_a_model_is_served_by_vllm_and_found_by_its_names() -> None:
    adapters = [{"name": "sql", "uri": "hf://org/sql"}]
    [made] = llms(
        model={**MODEL, "lora": {"adapters": adapters}}, parallelism={"tensor": 2}, replicas=3
    )
    found = component(made)
    box = found.template["spec"]["containers"][0]
    assert box["command"] == ["vllm", "serve", "/mnt/models"]
    assert "--tensor-parallel-size=2" in box["args"]
    assert box["args"][-2:] == ["--lora-modules", "sql=org/sql"]
    assert box["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert (found.port, found.way.models, found.way.choice) == (8000, ("llama", "sql"), "prefix")
    assert (found.scaling.minimum, found.scaling.maximum) == (3, 3)


def test_nodes_come_from_pipeline_or_data_parallelism() -> None:
    for split, workers in (({"pipeline": 3}, 2), ({"data": 8, "dataLocal": 4, "tensor": 1}, 1)):
        [made] = llms(parallelism=split, worker={"containers": [BOX]})
        assert component(made).workers == workers


def test_prefill_is_a_service_of_its_own() -> None:
    main, first = llms(prefill={"replicas": 2, "template": {"containers": [BOX]}})
    assert (main["name"], first["name"]) == ("chat", "chat-prefill")
    assert component(main).way.prefill == "chat-prefill"
    assert component(first).way.models == ()
    assert component(first).scaling.minimum == 2


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"model": {}}, "spec.model.uri"),
        ({"model": {"uri": "ftp://x/y"}}, "storageUri"),
        ({"baseRefs": [{"name": "x"}]}, "spec.baseRefs"),
        ({"parallelism": {"tensor": 0}}, "spec.parallelism.tensor"),
        ({"parallelism": {"data": 3, "dataLocal": 2}}, "spec.parallelism.data"),
        ({"worker": {"containers": [BOX]}}, "spec.worker"),
        ({"prefill": {"parallelism": {"pipeline": -1}}}, "spec.prefill.parallelism.pipeline"),
        ({"replicas": 1, "scaling": {"maxReplicas": 2}}, "spec.replicas"),
        ({"model": {**MODEL, "lora": {"adapters": [{"uri": "s3://x/y"}]}}}, "adapters[0]"),
    ],
)
def test_what_a_language_model_cannot_have_is_named(spec: Json, field: str) -> None:
    with pytest.raises(Problem) as found:
        llms(**spec)
    assert field in found.value.field


def sets(size: int = 3, **spec: Any) -> Component:
    template = {"size": size, "workerTemplate": {"spec": {"containers": [BOX]}}}
    [made] = lws.services(obj("LeaderWorkerSet", leaderWorkerTemplate=template, **spec))
    return component(made)


def test_a_leader_worker_set_has_replicas_of_its_size() -> None:
    found = sets(replicas=2)
    assert (found.workers, found.scaling.minimum, found.scaling.maximum) == (2, 2, 2)
    assert "readinessProbe" not in found.template["spec"]["containers"][0]
    assert found.template["labels"][lws.NAME_LABEL] == "chat"
    assert sets(size=1).workers == 0


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"leaderWorkerTemplate": {"size": 0}}, "leaderWorkerTemplate.size"),
        ({"leaderWorkerTemplate": {"restartPolicy": "Never"}}, "restartPolicy"),
        ({"leaderWorkerTemplate": {"size": 2}}, "workerTemplate"),
    ],
)
def test_what_a_leader_worker_set_cannot_have_is_named(spec: Json, field: str) -> None:
    with pytest.raises(Problem) as found:
        lws.services(obj("LeaderWorkerSet", **spec))
    assert field in found.value.field


def test_configs_hold_where_the_service_says_nothing() -> None:
    base = {"replicas": 3, "template": {"containers": [{"name": "main", "image": "base"}]}}
    later = {"replicas": 5, "parallelism": {"tensor": 2}}
    known = {name: obj("Config", **spec) for name, spec in (("a", base), ("b", later))}
    own = {"containers": [{"name": "main", "env": [{"name": "E", "value": "1"}]}]}
    refs = [{"name": "a"}, {"name": "b"}]
    service = obj("LLMInferenceService", model=MODEL, template=own, baseRefs=refs)
    [made] = llm.services(service, configs=known.get)
    found = component(made)
    box = found.template["spec"]["containers"][0]
    assert (box["image"], box["env"][-1]["name"]) == ("base", "E")
    assert box["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert found.scaling.minimum == 5
