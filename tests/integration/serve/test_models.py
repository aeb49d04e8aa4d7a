"""Models from a store as Datasets: fetched once a node, there before a service asks, told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.data_caches import can_mount
from tests.support.s3 import S3, SECRET, USER, Bucket
from tests.support.served_models import (
    FLOWER,
    READY_WITHIN,
    ask,
    condition,
    deploy,
    manifest,
    pods,
    ready,
    remove,
)
from tests.support.waiting import eventually_sync

pytest.importorskip("sklearn", reason="needs the serve extra")
pytest.importorskip("obstore", reason="needs the data extra")

KSERVE = "apis/serving.kserve.io/v1alpha1"
DATASETS = "apis/data.fluid.io/v1alpha1/namespaces/default/datasets"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    running = S3(tmp_path_factory.mktemp("s3"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[ControlPlane]:
    """A control plane whose Secret ``storage-config`` says how to reach the store."""
    running = ControlPlane(tmp_path_factory.mktemp("models") / "up").start()
    told = {
        "type": "s3",
        "endpoint_url": s3.url,
        "access_key_id": USER,
        "secret_access_key": SECRET,
    }
    for namespace in ("default", "lockstep-system"):
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "storage-config", "namespace": namespace},
            "stringData": {"default": json.dumps(told)},
        }
        deploy(running, json.dumps(secret))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    place = tmp_path_factory.mktemp("model") / "model.joblib"
    joblib.dump(LogisticRegression(max_iter=500).fit(*load_iris(return_X_y=True)), place)
    return place.read_bytes()


def predicts(plane: ControlPlane, name: str) -> bool:
    body = {"instances": [FLOWER]}
    return ask(plane, name, f"/v1/models/{name}:predict", body) == (200, {"predictions": [0]})


def fetched(bucket: Bucket) -> int:
    """Return how often the model's file was asked for."""
    asked = bucket.server.asked("model.joblib")
    return len([one for one in asked if "GetObject" in one and bucket.name in one])


def datasets(plane: ControlPlane) -> list[str]:
    return [one["metadata"]["name"] for one in plane.read(DATASETS)["items"]]


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_two_services_fetch_one_model_once(plane: ControlPlane, s3: S3, model: bytes) -> None:
    bucket = s3.bucket("shared")
    bucket.put("iris/model.joblib", model)
    uri = f"s3://{bucket.name}/iris"
    for name in ("one", "two"):
        deploy(plane, manifest(name, uri, minReplicas=1))
    for name in ("one", "two"):
        ready(plane, name)
        assert predicts(plane, name)
    assert fetched(bucket) == 1
    [pod] = pods(plane, "one")
    spec = plane.read(f"api/v1/namespaces/default/pods/{pod}")["spec"]
    assert "initContainers" not in spec
    [name] = datasets(plane)
    assert name.startswith("model-iris-")
    remove(plane, "one")
    assert datasets(plane) == [name]
    assert predicts(plane, "two")
    remove(plane, "two")
    eventually_sync(lambda: not datasets(plane), READY_WITHIN, "the last service took it along")


@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
def test_a_local_model_is_there_before_its_service(
    plane: ControlPlane, s3: S3, model: bytes
) -> None:
    bucket = s3.bucket("local")
    bucket.put("flowers/iris/model.joblib", model)
    local = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LocalModelCache",
        "metadata": {"name": "flowers"},
        "spec": {"sourceModelUri": f"s3://{bucket.name}/flowers", "modelSize": "1Mi"},
    }
    deploy(plane, json.dumps(local))

    def told() -> dict[str, Any]:
        found: dict[str, Any] = plane.read(f"{KSERVE}/localmodelcaches/flowers").get("status", {})
        return found

    eventually_sync(
        lambda: (told().get("copies") or {}).get("available") == 1, READY_WITHIN, "it is there"
    )
    assert fetched(bucket) == 1
    deploy(plane, manifest("early", f"s3://{bucket.name}/flowers/iris", minReplicas=1))
    ready(plane, "early")
    assert predicts(plane, "early")
    assert fetched(bucket) == 1
    assert {"namespace": "default", "name": "early"} in told()["inferenceServices"]
    remove(plane, "early")


def test_a_model_that_its_store_does_not_have_is_told(plane: ControlPlane) -> None:
    deploy(plane, manifest("lost", "s3://there-is-no-such-bucket/iris", minReplicas=1))
    eventually_sync(
        lambda: "there-is-no-such-bucket" in condition(plane, "lost").get("message", ""),
        READY_WITHIN,
        "the service says which source fails",
    )
    remove(plane, "lost")


def test_trained_models_come_and_go_while_the_replica_runs(
    plane: ControlPlane, s3: S3, model: bytes
) -> None:
    bucket = s3.bucket("trained")
    bucket.put("good/model.joblib", model)
    parent = json.loads(manifest("many", "", minReplicas=1))
    del parent["spec"]["predictor"]["model"]["storageUri"]
    deploy(plane, json.dumps(parent))
    ready(plane, "many")
    [pod] = pods(plane, "many")
    deploy(plane, trained("first", f"s3://{bucket.name}/good"))
    eventually_sync(lambda: says(plane, "first") == "True", READY_WITHIN, "it is loaded")
    flowers = {"instances": [FLOWER]}
    answer = ask(plane, "many", "/v1/models/first:predict", flowers)
    assert answer == (200, {"predictions": [0]})
    deploy(plane, trained("bad", f"s3://{bucket.name}/nothing"))
    eventually_sync(
        lambda: "there is nothing" in says(plane, "bad", "message"), READY_WITHIN, "why it is not"
    )
    server = ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))
    path = f"/{KSERVE}/namespaces/default/trainedmodels/first"
    assert server.request("DELETE", path).status == 200
    eventually_sync(
        lambda: ask(plane, "many", "/v1/models/first:predict", flowers)[0] == 404,
        READY_WITHIN,
        "it is unloaded",
    )
    assert pods(plane, "many") == [pod]
    remove(plane, "many")


def trained(name: str, uri: str) -> str:
    spec = {"storageUri": uri, "framework": "sklearn", "memory": "1Mi"}
    return json.dumps(
        {
            "apiVersion": "serving.kserve.io/v1alpha1",
            "kind": "TrainedModel",
            "metadata": {"name": name},
            "spec": {"inferenceService": "many", "model": spec},
        }
    )


def says(plane: ControlPlane, name: str, field: str = "status") -> str:
    path = f"{KSERVE}/namespaces/default/trainedmodels/{name}"
    conditions = plane.read(path).get("status", {}).get("conditions", [])
    return next((str(one.get(field, "")) for one in conditions if one["type"] == "Ready"), "")
