"""A small cluster with something of every kind, for pages to show."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from tests.support.waiting import eventually_sync

from lockstep.api.names import API_VERSION

if TYPE_CHECKING:
    from tests.support.apiserver import ApiServer

Json = dict[str, Any]
NODES = [f"sim-0-{leaf}-{node}" for leaf in range(2) for node in range(4)]
KINDS = {
    "Namespace": "/api/v1/namespaces",
    "Queue": f"/apis/{API_VERSION}/queues",
    "Team": f"/apis/{API_VERSION}/teams",
    "PriceList": f"/apis/{API_VERSION}/pricelists",
    "DeviceUsage": f"/apis/{API_VERSION}/deviceusages",
    "TrainingJob": f"/apis/{API_VERSION}/namespaces/{{}}/trainingjobs",
    "Environment": f"/apis/{API_VERSION}/namespaces/{{}}/environments",
    "ModelVersion": f"/apis/{API_VERSION}/namespaces/{{}}/modelversions",
    "PipelineRun": f"/apis/{API_VERSION}/namespaces/{{}}/pipelineruns",
    "Notebook": "/apis/kubeflow.org/v1/namespaces/{}/notebooks",
    "Dataset": "/apis/data.fluid.io/v1alpha1/namespaces/{}/datasets",
    "InferenceService": "/apis/serving.kserve.io/v1beta1/namespaces/{}/inferenceservices",
}


def fill(server: ApiServer) -> None:
    """Create it all; simulated nodes of ``8x8,nodes-per-leaf=4`` are there already."""
    for obj in objects():
        meta = obj["metadata"]
        path = KINDS[obj["kind"]].format(meta.get("namespace", ""))
        # The namespace of a team is there soon after the team.
        eventually_sync(
            lambda path=path, obj=obj: server.request("POST", path, obj).status in (201, 409),
            what=f"{obj['kind']} {meta['name']} is created",
        )
    cards = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
    patch = {"metadata": {"annotations": {"lockstep.dev/kernel-log": cards}}}
    done = server.request(
        "PATCH",
        f"/api/v1/nodes/{NODES[-1]}",
        json.dumps(patch).encode(),
        content_type="application/merge-patch+json",
    )
    assert done.status == 200, done.body


def objects() -> list[Json]:
    """Return its objects in the order in which they can be created."""
    made = [_own("Namespace", "speech", api="v1")]
    made.append(_team())
    made += [
        _own("Queue", "research", spec={"guaranteed": {"nvidia.com/gpu": 40}, "weight": 2}),
        _own("Queue", "speech", spec={"parent": "research", "guaranteed": {"nvidia.com/gpu": 16},
                                      "limit": {"nvidia.com/gpu": 32}}),
        _own("Queue", "language", spec={"parent": "research",
                                        "guaranteed": {"nvidia.com/gpu": 24}}),
        _own("PriceList", "cloud", spec={"currency": "EUR", "prices": [{"gpuHour": 2.5}]}),
    ]  # fmt: skip
    made += [
        job("vision", "resnet-sweep", "vision", 2, 8),
        job("vision", "detector", "vision", 1, 4),
        job("speech", "whisper-tune", "speech", 2, 8),
        job("default", "llm-7b", "language", 2, 8, elastic=True),
        job("default", "llm-70b", "language", 6, 8),
        job("vision", "segment", "vision", 1, 3),
        job("speech", "broken", "speech", 1, 1, fails=True),
    ]
    made += [_usage(number, name) for number, name in enumerate(NODES[:6])]
    made += _others()
    return made


def _own(kind: str, name: str, namespace: str = "", api: str = API_VERSION, **more: Any) -> Json:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": meta, **more}


def _team() -> Json:
    members = [{"name": "ana", "role": "Admin"}, {"name": "ben"}]
    queue = {"guaranteed": {"nvidia.com/gpu": 16}, "limit": {"nvidia.com/gpu": 32}}
    spec = {"members": members, "namespaces": ["vision"], "queue": queue}
    return _own("Team", "vision", spec=spec)


def job(
    namespace: str,
    name: str,
    queue: str,
    pods: int,
    gpus: int,
    *,
    elastic: bool = False,
    fails: bool = False,
) -> Json:
    """Return a simulated job that runs until it is deleted, or fails."""
    limits = {"nvidia.com/gpu": gpus, "cpu": 4}
    container = {"name": "main", "image": "train:1", "command": ["train", name]}
    template: Json = {"spec": {"containers": [{**container, "resources": {"limits": limits}}]}}
    if fails:
        told = {"lockstep.dev/runtime": "1", "lockstep.dev/fail-rate": "1"}
        template["metadata"] = {"annotations": told}
    role: Json = {"name": "worker", "replicas": pods, "template": template}
    if elastic:
        role |= {"min": 1, "max": 4}
    spec: Json = {"framework": "plain", "queue": queue, "roles": [role], "simulated": True}
    if fails:
        spec["recovery"] = {"maxRestarts": 1}
    return _own("TrainingJob", name, namespace, spec=spec)


def _usage(number: int, node: str) -> Json:
    """Return what a node agent would tell; nodes that are simulated have none."""
    seeded = random.Random(number)  # noqa: S311 - figures of a test
    gpus = []
    for index in range(8):
        busy = 0 if number == 2 else seeded.randint(62, 99)
        gpus.append(
            {
                "index": index,
                "model": "NVIDIA-H100-80GB-HBM3",
                "memory": 81_920,
                "memoryUsed": busy * 780,
                "utilization": busy,
                "power": 90 + busy * 6,
                "temperature": 30 + busy // 2,
            }
        )
    return _own("DeviceUsage", node, time="2026-01-01T00:00:00Z", gpus=gpus)


def _others() -> list[Json]:
    """Return objects of the kinds that are served natively."""
    container = {"name": "ana", "image": "kubeflownotebookswg/jupyter-scipy:v1.10.0"}
    predictor = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "file:///tmp/iris"}}
    values = {"outputs": {"sum": "${{ 1 + 1 }}"}}
    tasks = [
        {"name": "prepare", "template": "add"},
        {"name": "train", "template": "add", "after": ["prepare"]},
        {"name": "check", "template": "wait", "after": ["train"]},
    ]
    templates = {"main": {"graph": {"tasks": tasks}}, "add": values, "wait": {"suspend": {}}}
    mounts = [{"mountPoint": "local:///tmp/pictures", "name": "pictures", "path": "/"}]
    model = {
        "model": "digits",
        "version": "1",
        "uri": "s3://models/digits/1",
        "metrics": {"accuracy": 0.97},
    }
    return [
        _own("Environment", "gpu", "default", spec={"resources": {"nvidia.com/gpu": 1}}),
        _own("Notebook", "ana", "default", api="kubeflow.org/v1",
             spec={"template": {"spec": {"containers": [container]}}}),
        _own("Dataset", "pictures", "default", api="data.fluid.io/v1alpha1",
             spec={"mounts": mounts}),
        _own("InferenceService", "iris", "default", api="serving.kserve.io/v1beta1",
             spec={"predictor": {"minReplicas": 0, **predictor}}),
        _own("PipelineRun", "digits-1", "default", spec={"entry": "main", "templates": templates}),
        _own("ModelVersion", "digits-1", "default", spec=model),
    ]  # fmt: skip
