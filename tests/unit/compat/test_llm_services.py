"""LLMInferenceServices and LeaderWorkerSets as InferenceServices."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta
from lockstep.compat.kserve import llm
from lockstep.compat.kserve.objects import InferenceService, Spec
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.translate import Component, predictor
from lockstep.compat.leaderworkerset import translate as lws
from lockstep.serve.core.autoscale import policy

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


def test_vllm_serves_a_model_under_its_names() -> None:
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


def commands(**spec: Any) -> list[str]:
    """Return the command lines of head and worker."""
    [made] = llms(**spec)
    found = component(made)
    boxes = [one["spec"]["containers"][0] for one in (found.template, found.worker)]
    assert all(box["volumeMounts"] for box in boxes)
    return [" ".join([*box["command"], *box["args"]]) for box in boxes]


def test_data_ranks_over_nodes_know_head_and_rank() -> None:
    head, worker = commands(parallelism={"data": 8, "dataLocal": 4, "dataRPCPort": 6000})
    for line in (head, worker):
        assert "--data-parallel-size=8 --data-parallel-size-local=4" in line
        assert "--data-parallel-rpc-port=6000" in line
    assert "--data-parallel-address=$(POD_IP)" in head
    assert "--data-parallel-start-rank=0" in head
    assert "--headless" not in head
    assert "--data-parallel-address=$(LWS_LEADER_ADDRESS)" in worker
    assert "--data-parallel-start-rank=$((LWS_WORKER_INDEX * 4))" in worker
    assert "--headless" in worker


def test_pipeline_stages_over_nodes_meet_at_head() -> None:
    head, worker = commands(parallelism={"pipeline": 2, "tensor": 4})
    shared = "--nnodes=2 --node-rank=$(LWS_WORKER_INDEX) --master-addr=$(LWS_LEADER_ADDRESS)"
    assert all(f"{shared} --master-port=29500" in line for line in (head, worker))
    assert ("--headless" in head, "--headless" in worker) == (False, True)


def test_shell_of_a_worker_gives_the_engine_its_rank(tmp_path: Path) -> None:
    [made] = llms(parallelism={"data": 4, "dataLocal": 2})
    box = component(made).worker["spec"]["containers"][0]
    engine = tmp_path / "vllm"
    engine.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    engine.chmod(0o755)
    told = {"PATH": f"{tmp_path}:/bin:/usr/bin", "LWS_WORKER_INDEX": "1"}
    run = subprocess.run(
        [*box["command"], *box["args"]], env=told, capture_output=True, text=True, check=True
    )
    heard = run.stdout.splitlines()
    assert heard[:2] == ["serve", "/mnt/models"]
    assert {*box["args"], "--data-parallel-start-rank=2"} <= set(heard)


def test_prefill_and_decode_carry_the_kv_transfer_configuration() -> None:
    for made in llms(prefill={"parallelism": {"tensor": 2}}):
        box = component(made).template["spec"]["containers"][0]
        [stated] = [one for one in box["args"] if one.startswith("--kv-transfer-config=")]
        transfer = json.loads(stated.partition("=")[2])
        assert transfer == {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        assert "VLLM_NIXL_SIDE_CHANNEL_HOST" in [one["name"] for one in box["env"]]


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"router": {"route": {}, "gateway": {}, "scheduler": {}}}, []),
        ({"storageInitializer": {"enabled": True}, "trustRemoteCode": True}, []),
        ({"router": {"scheduler": {"replicas": 2}}}, ["spec.router.scheduler.replicas"]),
        ({"router": {"route": {"weight": 10}}}, ["spec.router.route.weight"]),
        (
            {"scaling": {"maxReplicas": 2, "wva": {}, "keda": {"triggers": [1]}}},
            ["spec.scaling.keda"],
        ),
        ({"prefill": {"scaling": {"wva": {"x": 1}}}}, ["spec.prefill.scaling.wva"]),
        ({"storageInitializer": {"enabled": False}}, ["spec.storageInitializer.enabled"]),
        ({"made": "up", "parallelism": {"depth": 2}}, ["spec.made", "spec.parallelism.depth"]),
        (
            {"model": {"lora": {"adapters": [{"criticality": "Critical"}]}}},
            ["spec.model.lora.adapters[0].criticality"],
        ),
    ],
)
def test_fields_without_effect_are_named(spec: Json, named: list[str]) -> None:
    found = llm.ignored(obj("LLMInferenceService", **spec))
    assert [one.partition(": ")[0] for one in found] == named
    assert all(one.partition(": ")[2] for one in found)


def test_scaling_annotations_hold_for_the_services() -> None:
    target = {"autoscaling.knative.dev/target": "7"}
    meta = ObjectMeta(name="chat", namespace="n", uid="u", annotations=target)
    spec = {"model": MODEL, "scaling": {"minReplicas": 1, "maxReplicas": 4}}
    asked = AnyObject(metadata=meta, kind="LLMInferenceService", spec=spec)
    [made] = llm.services(asked)
    found = component(made)
    scale = found.scaling
    kept = policy(found.annotations, minimum=scale.minimum, maximum=scale.maximum)
    assert kept.target == pytest.approx(7 * 0.7)


def test_initializer_is_told_how_to_reach_the_hub() -> None:
    env = [{"name": "HF_TOKEN", "value": "t"}, {"name": "OTHER", "value": "o"}]
    template = {"containers": [{"name": "main", "env": env}]}
    [made] = llms(model={"uri": "hf://org/tiny"}, template=template)
    [fetching] = component(made).template["spec"]["initContainers"]
    assert [one["name"] for one in fetching["env"]] == ["STORAGE_CONFIG", "HF_TOKEN"]


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
        ({"parallelism": {"dataLocal": 2}}, "spec.parallelism.dataLocal"),
        ({"parallelism": {"data": 2, "pipeline": 2}}, "spec.parallelism.pipeline"),
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
