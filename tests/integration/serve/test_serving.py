"""A scikit-learn model by KServe's manifest: ready, asked, at zero, asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
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
    status,
)
from tests.support.waiting import eventually_sync

pytest.importorskip("sklearn", reason="needs the serve extra")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for all tests of the file."""
    running = ControlPlane(tmp_path_factory.mktemp("serve") / "up").start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of iris flowers, trained here."""
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    place = tmp_path_factory.mktemp("model") / "iris"
    place.mkdir(mode=0o755)
    inputs, classes = load_iris(return_X_y=True)
    joblib.dump(LogisticRegression(max_iter=500).fit(inputs, classes), place / "model.joblib")
    return place


def test_a_model_answers_goes_to_zero_and_answers_again(plane: ControlPlane, model: Path) -> None:
    deploy(plane, manifest("iris", f"file://{model}", minReplicas=0))
    ready(plane, "iris")
    said = status(plane, "iris")
    assert said["modelStatus"]["states"]["activeModelState"] == "Loaded"
    assert said["clusterServingRuntimeName"] == "kserve-sklearnserver"
    v1 = ask(plane, "iris", "/v1/models/iris:predict", {"instances": [FLOWER]})
    assert v1 == (200, {"predictions": [0]})
    tensor = {"name": "x", "shape": [1, 4], "datatype": "FP64", "data": FLOWER}
    code, v2 = ask(plane, "iris", "/v2/models/iris/infer", {"inputs": [tensor]})
    assert (code, v2["outputs"][0]["data"]) == (200, [0])

    eventually_sync(lambda: not pods(plane, "iris"), 120.0, "no replica is left")
    assert condition(plane, "iris")["status"] == "True"
    eventually_sync(
        lambda: status(plane, "iris")["modelStatus"]["states"]["targetModelState"] == "Standby",
        READY_WITHIN,
        "the model is told to be asleep",
    )
    again = ask(plane, "iris", "/v1/models/iris:predict", {"instances": [FLOWER]})
    assert again == (200, {"predictions": [0]})


def test_a_model_that_cannot_be_loaded_is_never_ready(plane: ControlPlane, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "model.joblib").write_bytes(b"not a model")
    deploy(plane, manifest("broken", f"file://{tmp_path}"))
    eventually_sync(
        lambda: "no scikit-learn model" in condition(plane, "broken").get("message", ""),
        READY_WITHIN,
        "the failure is told",
    )
    said = status(plane, "broken")["modelStatus"]
    assert condition(plane, "broken")["status"] == "False"
    assert said["transitionStatus"] == "BlockedByFailedLoad"
    assert said["lastFailureInfo"]["exitCode"] == 1
    remove(plane, "broken")


def test_an_unservable_model_is_reported_while_the_old_serves(
    plane: ControlPlane, model: Path
) -> None:
    deploy(plane, manifest("stays", f"file://{model}"))
    ready(plane, "stays")
    deploy(plane, manifest("stays", f"file://{model}", canaryTrafficPercent=101))
    eventually_sync(
        lambda: "canaryTrafficPercent: 101" in condition(plane, "stays").get("message", ""),
        READY_WITHIN,
        "the field is named",
    )
    code, _ = ask(plane, "stays", "/v1/models/stays:predict", {"instances": [FLOWER]})
    assert code == 200
    remove(plane, "stays")


def test_unknown_models_and_bad_input_are_named(plane: ControlPlane, model: Path) -> None:
    deploy(plane, manifest("strict", f"file://{model}"))
    ready(plane, "strict")
    cases = [
        ("/v1/models/other:predict", {"instances": [FLOWER]}, 404, "strict"),
        ("/v1/models/strict:predict", {"instances": [[1.0]]}, 400, "4 numbers"),
        ("/v1/models/strict:predict", {"instances": [[1.0], [1.0, 2.0]]}, 400, "shape"),
        ("/v1/models/strict:predict", {}, 400, "instances"),
        ("/v2/models/strict/infer", {"inputs": []}, 400, "inputs"),
        ("/nothing", {}, 404, "/v1/models"),
    ]
    for path, body, code, says in cases:
        found, answer = ask(plane, "strict", path, body)
        assert (found, says in answer["error"]) == (code, True), (path, body, answer)
    remove(plane, "strict")


SERVER = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(int(os.environ["CODE"]))
        body = b'"' + os.environ["WORD"].encode() + b'"'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("0.0.0.0", 8080), Answer).serve_forever()
"""


def version(word: str, code: int) -> str:
    """A service whose server answers every request with *code* and *word*, released in steps."""
    steps = "steps: [{setWeight: 50}, {analysis: {maxErrorRate: 0.2, requests: 4, duration: 1s}}]"
    container = {
        "name": "kserve-container",
        "image": "python",
        "command": ["python", "-c", SERVER],
        "env": [{"name": "WORD", "value": word}, {"name": "CODE", "value": str(code)}],
    }
    predictor = {"minReplicas": 1, "containers": [container]}
    meta = {"name": "stepped", "annotations": {"lockstep.dev/release": steps}}
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    return json.dumps({**head, "metadata": meta, "spec": {"predictor": predictor}})


def row(plane: ControlPlane, name: str) -> str:
    rows = plane.ok("serve", "list").splitlines()
    return next((one for one in rows if one.startswith(f"{name} ")), "")


def test_a_failing_version_is_rolled_back_a_good_one_promoted(plane: ControlPlane) -> None:
    heard: list[Any] = []

    def released(phase: str) -> bool:
        heard.append(ask(plane, "stepped", "/", {})[1])
        release = status(plane, "stepped")["components"]["predictor"].get("release", {})
        return bool(release.get("phase") == phase)

    deploy(plane, version("first", 200))
    ready(plane, "stepped")
    deploy(plane, version("bad", 500))
    eventually_sync(lambda: released("Failed"), READY_WITHIN, "the bad version is taken back")
    page = plane.ok("serve", "describe", "stepped")
    assert "answers failed" in page
    eventually_sync(
        lambda: "00001 100 %" in row(plane, "stepped"), READY_WITHIN, "all to the first"
    )
    assert {ask(plane, "stepped", "/", {})[1] for _ in range(6)} == {"first"}
    deploy(plane, version("good", 200))
    eventually_sync(lambda: released("Completed"), READY_WITHIN, "the good version has all")
    assert {"first", "bad", "good"} == set(heard)
    plane.ok("serve", "rollback", "stepped", "--to", "stepped-predictor-00001")
    eventually_sync(
        lambda: ask(plane, "stepped", "/", {})[1] == "first", READY_WITHIN, "the first is back"
    )
    remove(plane, "stepped")


QUEUED = """
import http.server, pathlib
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        waiting = pathlib.Path("/mnt/told/waiting").read_text()
        body = f"# TYPE queue_length gauge\\nqueue_length {waiting}\\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Answer).serve_forever()
"""


def test_replicas_follow_the_queue_that_their_server_tells(
    plane: ControlPlane, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "waiting").write_text("1")
    container = {
        "name": "kserve-container",
        "image": "python",
        "command": ["python", "-c", QUEUED],
        "volumeMounts": [{"name": "told", "mountPath": "/mnt/told"}],
    }
    target = {"type": "AverageValue", "averageValue": "4"}
    metric = {"metric": {"metricNames": ["queue_length"]}, "target": target}
    at_once = {"stabilizationWindowSeconds": 0}
    predictor = {
        "minReplicas": 1,
        "maxReplicas": 2,
        "containers": [container],
        "volumes": [{"name": "told", "hostPath": {"path": str(tmp_path)}}],
        "autoScaling": {
            "metrics": [{"type": "PodMetric", "podmetric": metric}],
            "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        },
    }
    head = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    body = {**head, "metadata": {"name": "queued"}, "spec": {"predictor": predictor}}
    deploy(plane, json.dumps(body))
    ready(plane, "queued")
    assert len(pods(plane, "queued")) == 1
    (tmp_path / "waiting").write_text("8")
    eventually_sync(lambda: len(pods(plane, "queued")) == 2, READY_WITHIN, "a second replica")
    (tmp_path / "waiting").write_text("1")
    eventually_sync(lambda: len(pods(plane, "queued")) == 1, READY_WITHIN, "one is enough again")
    remove(plane, "queued")
