"""A service that needs room takes GPUs from training by the queues' rules, and gives them back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.control_plane import ControlPlane
from tests.support.waiting import eventually_sync

from lockstep.api.simulated import TOLERATION

Json = dict[str, Any]
WITHIN = 120.0
ISVC = "apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices/burst"
LOCKSTEP = "lockstep.dev/v1alpha1"


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Four simulated nodes of 8 GPUs."""
    arguments = ("--no-process-node", "--simulate", "4x8")
    running = ControlPlane(tmp_path_factory.mktemp("burst") / "up", *arguments).start()
    yield running
    running.stop()


def queue(name: str, guaranteed: int) -> Json:
    spec = {"guaranteed": {"nvidia.com/gpu": guaranteed}}
    return {"apiVersion": LOCKSTEP, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def box(name: str) -> Json:
    gpus = {"nvidia.com/gpu": 8}
    return {
        "name": name,
        "image": "none",
        "command": ["run"],
        "resources": {"limits": gpus, "requests": gpus},
    }


def training(number: int) -> Json:
    template = {"spec": {"containers": [box("main")]}}
    role = {"name": "worker", "replicas": 1, "template": template}
    spec = {"framework": "plain", "queue": "training", "simulated": True, "roles": [role]}
    meta = {"name": f"train-{number}", "annotations": {"lockstep.dev/runtime": "100000"}}
    return {"apiVersion": LOCKSTEP, "kind": "TrainingJob", "metadata": meta, "spec": spec}


def service(replicas: int, *, stopped: bool = False) -> Json:
    annotations = {"serving.kserve.io/stop": "true" if stopped else "false"}
    predictor = {
        "minReplicas": replicas,
        "maxReplicas": replicas,
        "containers": [box("kserve-container")],
        "tolerations": [TOLERATION],
    }
    labels = {"lockstep.dev/queue": "serving"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "burst", "labels": labels, "annotations": annotations},
        "spec": {"predictor": predictor},
    }


def placed(plane: ControlPlane, prefix: str) -> int:
    """Return how many pods of that name have a node and do not end."""
    return sum(
        one["metadata"]["name"].startswith(prefix)
        and bool(one["spec"].get("nodeName"))
        and "deletionTimestamp" not in one["metadata"]
        for one in plane.read("api/v1/namespaces/default/pods")["items"]
    )


def submit(plane: ControlPlane, *objects: Json) -> None:
    plane.ok("submit", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))


@pytest.mark.soak
def test_a_burst_takes_gpus_from_training_and_gives_them_back(plane: ControlPlane) -> None:
    submit(plane, queue("training", 0), queue("serving", 16))
    submit(plane, *map(training, range(4)))
    eventually_sync(lambda: placed(plane, "train-") == 4, WITHIN, "training has all GPUs")
    submit(plane, service(2))
    eventually_sync(lambda: placed(plane, "burst-") == 2, WITHIN, "the service has its GPUs")
    # What it is guaranteed, and no more: two of four jobs go on.
    eventually_sync(lambda: placed(plane, "train-") == 2, WITHIN, "two jobs go on")
    server = ApiServer(plane.data, int(plane.ready_line.split()[1].rpartition(":")[2]))
    assert server.request("DELETE", f"/{ISVC}").status == 200
    eventually_sync(lambda: placed(plane, "train-") == 4, WITHIN, "training has them again")
    assert placed(plane, "burst-") == 0
