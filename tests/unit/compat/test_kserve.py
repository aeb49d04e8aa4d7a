"""KServe's services as what it takes to serve them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.meta import ObjectMeta
from lockstep.compat.kserve.objects import (
    InferenceService,
    RuntimeSpec,
    ServingRuntime,
    Spec,
    SupportedFormat,
)
from lockstep.compat.kserve.problem import Problem
from lockstep.compat.kserve.runtimes import known
from lockstep.compat.kserve.translate import Component, predictor

IRIS = {"modelFormat": {"name": "sklearn"}, "storageUri": "file:///m"}


def service(annotations: dict[str, str] | None = None, **spec: Any) -> InferenceService:
    meta = ObjectMeta(name="iris", namespace="n", uid="u", annotations=annotations or {})
    canary, transformer = spec.pop("canary", []), spec.pop("transformer", None)
    return InferenceService(
        metadata=meta, spec=Spec(predictor=spec, canary=canary, transformer=transformer)
    )


def canary(name: str, percent: int, **predictor: Any) -> dict[str, Any]:
    return {"predictor": {"name": name, "model": IRIS, **predictor}, "trafficPercent": percent}


def runtime(name: str, priority: int = 1, **spec: Any) -> ServingRuntime:
    form = SupportedFormat(name="sklearn", version="1", auto_select=True, priority=priority)
    fields: dict[str, Any] = {
        "supported_model_formats": [form],
        "protocol_versions": ["v1"],
        "containers": [{"name": "kserve-container", "image": f"i/{name}:1", "args": ["{{.Name}}"]}],
        **spec,
    }
    return ServingRuntime(metadata=ObjectMeta(name=name, namespace="n"), spec=RuntimeSpec(**fields))


def served(*runtimes: ServingRuntime, **spec: Any) -> Component:
    return predictor(service(**spec), known(runtimes, []))


def container(component: Component) -> dict[str, Any]:
    found: dict[str, Any] = component.template["spec"]["containers"][0]
    return found


def test_a_stock_runtime_serves_without_any_object() -> None:
    found = served(model=IRIS)
    assert container(found)["image"] == "kserve/sklearnserver:latest"
    assert "--model_name=iris" in container(found)["args"]
    assert (found.port, found.probe) == (8080, "/v1/models/iris")
    assert [one["containerPort"] for one in container(found)["ports"]] == [8080, 8081]
    assert found.grpc_port == 8081
    assert container(found)["readinessProbe"]["httpGet"]["path"] == "/v1/models/iris"


@pytest.mark.parametrize(
    ("runtimes", "wanted"),
    [
        ([runtime("a", 1), runtime("b", 2)], "i/b:1"),
        ([runtime("a", 1), runtime("b", 2, disabled=True)], "i/a:1"),
        ([runtime("a", 5, protocol_versions=["v2"])], "kserve/sklearnserver:latest"),
        ([runtime("kserve-sklearnserver", 0)], "i/kserve-sklearnserver:1"),
    ],
)
def test_the_best_runtime_that_offers_itself_is_taken(
    runtimes: list[ServingRuntime], wanted: str
) -> None:
    assert container(served(*runtimes, model=IRIS))["image"] == wanted


def test_the_old_way_to_name_a_framework_is_the_same() -> None:
    assert served(sklearn={"storageUri": "file:///m"}) == served(model=IRIS)


def test_what_the_service_says_lies_over_the_runtime() -> None:
    own = {**IRIS, "args": ["--x"], "env": [{"name": "A", "value": "1"}], "runtimeVersion": "9"}
    found = container(served(runtime("a", 5), model=own, nodeSelector={"k": "v"}))
    assert found["args"] == ["iris", "--x"]
    assert found["env"] == [{"name": "A", "value": "1"}]
    assert found["image"] == "i/a:9"


@pytest.mark.parametrize(
    ("uri", "volume", "initializer"),
    [
        ("file:///m/x", {"hostPath": {"path": "/m/x", "type": "Directory"}}, None),
        ("pvc://claim/below", {"persistentVolumeClaim": {"claimName": "claim"}}, None),
        ("s3://b/p", {"emptyDir": {}}, ["s3://b/p", "/mnt/models"]),
    ],
)
def test_a_model_comes_to_its_usual_place(
    uri: str, volume: dict[str, Any], initializer: list[str] | None
) -> None:
    found = served(model={**IRIS, "storageUri": uri})
    spec = found.template["spec"]
    name = spec["volumes"][0]["name"]
    assert spec["volumes"] == [{"name": name, **volume}]
    assert container(found)["volumeMounts"][0]["mountPath"] == "/mnt/models"
    made = spec.get("initContainers")
    assert (made[0]["args"] if made else None) == initializer


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"model": {"modelFormat": {"name": "sklern"}}}, "modelFormat.name", "sklearn"),
        ({"model": {}}, "modelFormat.name", "needed"),
        ({"model": {**IRIS, "runtime": "x"}}, "runtime", "kserve-sklearnserver"),
        ({"sklearn": {}, "onnx": {}}, "spec.predictor", "exactly one"),
        ({}, "spec.predictor", "needed"),
        ({"minReplicas": 1}, "spec.predictor", "containers"),
        ({"model": IRIS, "canaryTrafficPercent": 101}, "canaryTrafficPercent", "0 to 100"),
        ({"model": IRIS, "canaryTrafficPercent": True}, "canaryTrafficPercent", "0 to 100"),
        ({"model": IRIS, "minReplicas": 3, "maxReplicas": 2}, "maxReplicas", "below"),
        ({"model": IRIS, "minReplicas": -1}, "minReplicas", "from 0"),
        ({"model": IRIS, "timeout": 0}, "timeout", "from 1"),
        ({"model": IRIS, "scaleMetric": "moon"}, "scaleMetric", "concurrency"),
        ({"model": IRIS, "scaleTarget": 0}, "scaleTarget", "from 1"),
        ({"model": IRIS, "workerSpec": {"pipelineParallelSize": 1}}, "pipelineP", "from 2"),
        ({"model": IRIS, "transformer": {"a": 1}}, "spec.transformer", "its own container"),
        ({"model": IRIS, "logger": {"url": "ftp://x"}}, "logger.url", "http URL"),
        ({"model": IRIS, "logger": {"url": "http://x", "mode": "x"}}, "logger.mode", "all"),
        ({"model": IRIS, "batcher": {"maxBatchSize": 0}}, "batcher.maxBatchSize", "from 1"),
        ({"model": IRIS, "canary": [canary("A", 5)]}, "canary[0].predictor.name", "a name"),
        ({"model": IRIS, "canary": [canary("a", 101)]}, "canary[0].trafficPercent", "0 to 100"),
        (
            {"model": IRIS, "canary": [canary("a", 60), canary("b", 50)]},
            "canary[].trafficPercent",
            "100 at most",
        ),
        (
            {"model": IRIS, "canary": [canary("a", 5, minReplicas=-1)]},
            "spec.canary[0].predictor.minReplicas",
            "from 0",
        ),
        (
            {"model": IRIS, "canary": [canary("a", 5, workerSpec={"x": 1})]},
            "spec.canary[0].predictor.workerSpec",
            "in steps instead",
        ),
        (
            {"model": IRIS, "canary": [canary("a", 5)], "canaryTrafficPercent": 3},
            "canaryTrafficPercent",
            "leave one",
        ),
        ({"model": {**IRIS, "storageUri": "ftp://x/y"}}, "storageUri", "s3"),
        ({"model": {**IRIS, "storageUri": "model"}}, "storageUri", "s3://"),
        ({"model": {**IRIS, "storageUri": "file:///a/../b"}}, "storageUri", "climb"),
    ],
)
def test_what_cannot_be_served_is_named(spec: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(Problem) as found:
        served(**spec)
    assert field in found.value.field
    assert remedy in str(found.value)
