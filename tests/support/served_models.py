"""A scikit-learn model by KServe's manifest, and how tests ask it."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync, stretched

FLOWER = [5.1, 3.5, 1.4, 0.2]
ISVC = "apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices"
READY_WITHIN = 120.0


def manifest(name: str, uri: str, **predictor: Any) -> str:
    annotations = {
        "autoscaling.knative.dev/window": "6s",
        "autoscaling.knative.dev/scale-to-zero-pod-retention-period": "0s",
    }
    spec = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": uri}, **predictor}
    return json.dumps(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"predictor": spec},
        }
    )


def status(plane: ControlPlane, name: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.read(f"{ISVC}/{name}").get("status", {})
    return found


def condition(plane: ControlPlane, name: str, kind: str = "Ready") -> dict[str, Any]:
    found = status(plane, name).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


def pods(plane: ControlPlane, name: str) -> list[str]:
    items = plane.read("api/v1/namespaces/default/pods")["items"]
    return [
        one["metadata"]["name"]
        for one in items
        if one["metadata"]["labels"].get("serving.kserve.io/inferenceservice") == name
    ]


def ask(plane: ControlPlane, name: str, path: str, body: Any) -> tuple[int, Any]:
    url = urlsplit(status(plane, name)["url"])
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=stretched(120))
    connection.request("POST", url.path + path, json.dumps(body))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def deploy(plane: ControlPlane, text: str) -> None:
    plane.ok("submit", "-f", "-", stdin=text)


def remove(plane: ControlPlane, name: str) -> None:
    server = ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))
    assert server.request("DELETE", f"/{ISVC}/{name}").status == 200
    eventually_sync(lambda: not pods(plane, name), READY_WITHIN, "its replicas are gone")


def ready(plane: ControlPlane, name: str) -> None:
    eventually_sync(
        lambda: condition(plane, name).get("status") == "True", READY_WITHIN, f"{name} is ready"
    )
