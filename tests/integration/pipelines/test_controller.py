"""The controller with its own rights on both servers; the test is the node of its pods."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_cluster import KubeCluster
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually

from lockstep.api.core import CONFIG_MAPS, NAMESPACES, PODS
from lockstep.api.model_version import MODEL_VERSIONS
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.pipeline import KEPT_LABEL, PIPELINE_RUNS, RUN_LABEL, PipelineRun
from lockstep.api.pipeline_trigger import PIPELINE_TRIGGERS, TRIGGER_LABEL
from lockstep.compat import dialects
from lockstep.compat.argo.objects import CRON_WORKFLOWS, WORKFLOW_TEMPLATES, WORKFLOWS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.pipelines.core.objects import KINDS

WITHIN = 90.0
CONTAINERS = [{"name": "main", "image": "none", "command": ["true"]}]
TRAINING: dict[str, Any] = {
    "framework": "pytorch",
    "suspend": True,
    "roles": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": CONTAINERS}}}],
}
REPLICAS = {"Worker": {"replicas": 1, "template": {"spec": {"containers": CONTAINERS}}}}
NESTED: dict[str, Any] = {"desired": "Suspended", "templates": {"main": {"suspend": {}}}}
SPECS: dict[str, dict[str, Any]] = {
    "TrainingJob": TRAINING,
    "PipelineRun": NESTED,
    "ModelVersion": {"model": "m", "version": "1", "uri": "s3://b/m"},
    "PyTorchJob": {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": REPLICAS},
    "InferenceService": {"predictor": {"containers": CONTAINERS, "minReplicas": 0}},
    "DataLoad": {"dataset": {"name": "none", "namespace": "default"}},
}


@pytest.fixture(scope="module", params=["embedded", "kubernetes"])
def server(request: pytest.FixtureRequest) -> ApiServer:
    """The embedded server and a real control plane in turn."""
    if request.param == "embedded":
        embedded: ApiServer = request.getfixturevalue("shared_server")
        return embedded
    real: KubeCluster = request.getfixturevalue("running_cluster")
    real.empty()
    return real


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    """A client, while the controllers run with the rights that they are given."""
    async with server.client() as found:
        await ensure_foreign(found, dialects.manifests(["argo", "fluid", "kserve", "kubeflow"]))
        config = server.data / "kubeconfigs" / "controllers.kubeconfig"
        controllers = PartProcess(config, part="controllers").start()
        with contextlib.suppress(AlreadyExists):
            await found.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        yield found
        controllers.kill()


async def play(client: Client, name: str) -> None:
    """Let the pods of a run succeed."""
    label = f"{RUN_LABEL}={name}"
    for pod in (await client.list(PODS, "default", label_selector=label)).items:
        if pod.status.phase == "Pending":
            status = {"status": {"phase": "Succeeded"}}
            with contextlib.suppress(NotFound):
                await client.patch(PODS, pod.metadata.name, status, "default", subresource="status")


async def end(client: Client, name: str) -> PipelineRun:
    """Let the pods of a run succeed until it is over."""

    async def over() -> PipelineRun | None:
        label = f"{RUN_LABEL}={name}"
        for pod in (await client.list(PODS, "default", label_selector=label)).items:
            if pod.status.phase == "Pending":
                status = {"status": {"phase": "Succeeded"}}
                await client.patch(PODS, pod.metadata.name, status, "default", subresource="status")
        with contextlib.suppress(NotFound):
            run = await client.get(PIPELINE_RUNS, name, "default")
            return run if run.status.completion_time else None
        return None

    return await eventually(over, WITHIN, f"run {name} is over")


def object_steps() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return tasks that make, change, read and delete one object of each kind in ``SPECS``."""
    tasks: list[dict[str, Any]] = []
    templates: dict[str, Any] = {}
    for number, kind in enumerate(KINDS):
        resource = kind.resource
        if resource.kind not in (*SPECS, "ConfigMap"):
            continue  # kinds of dialects that are not installed here
        body = {"data": {"a": "1"}} if resource.kind == "ConfigMap" else {}
        if resource.kind in SPECS:
            body = {"spec": SPECS[resource.kind]}
        meta = {"name": f"made-{resource.kind.lower()}"}
        tree = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **body}
        before: list[str] = []
        for action in ("Create", "Apply", "Get", "Delete"):
            name = f"{resource.kind}-{number}-{action}"
            step = {"action": action, "object": tree, "success": "true", "failure": "false"}
            templates[name] = {"object": step}
            tasks.append({"name": name, "template": name, "after": before})
            before = [name]
    return tasks, templates


async def test_steps_are_pods_and_objects_of_every_kind(client: Client) -> None:
    tasks, templates = object_steps()
    tasks.append({"name": "pod", "template": "pod", "keep": {}})
    spec = {
        "expiresAfter": "1s",
        "templates": {
            "main": {"graph": {"tasks": tasks, "failFast": False}},
            "pod": {"pod": {"template": {"spec": {"containers": CONTAINERS}}}},
            **templates,
        },
    }
    await client.create(PIPELINE_RUNS, {"metadata": {"name": "all"}, "spec": spec}, "default")
    run = await end(client, "all")
    assert run.status.phase == "Succeeded", run.status.message
    kept = await client.list(CONFIG_MAPS, "default", label_selector=KEPT_LABEL)
    assert [one.data["from"] for one in kept.items] == ["all/main.pod"]

    async def gone() -> bool:
        with contextlib.suppress(NotFound):
            await client.get(PIPELINE_RUNS, "all", "default")
            return False
        return True

    await eventually(gone, WITHIN, "the run expires")


async def test_a_workflow_of_a_template_comes_by_cron_and_goes(client: Client) -> None:
    pod = {"name": "pod", "container": CONTAINERS[0]}
    template = {"entrypoint": "pod", "templates": [pod]}
    await client.create(
        WORKFLOW_TEMPLATES, {"metadata": {"name": "shape"}, "spec": template}, "default"
    )
    made = {"workflowTemplateRef": {"name": "shape"}, "ttlStrategy": {"secondsAfterCompletion": 0}}
    # Every time since yesterday is due, and the last of them counts.
    spec = {"schedule": "0 0 * * *", "startingDeadlineSeconds": 90000, "workflowSpec": made}
    await client.create(CRON_WORKFLOWS, {"metadata": {"name": "daily"}, "spec": spec}, "default")
    since = {"status": {"lastScheduledTime": "2026-01-01T00:00:00Z"}}
    await client.patch(CRON_WORKFLOWS, "daily", since, "default", subresource="status")

    async def name() -> str:
        items = (await client.list(WORKFLOWS, "default")).items
        return items[0].metadata.name if items else ""

    run = await eventually(name, WITHIN, "a workflow is made")

    async def gone() -> bool:
        await play(client, run)
        return not (await client.list(WORKFLOWS, "default")).items

    await eventually(gone, WITHIN, "the workflow expires")
    cron = await client.get(CRON_WORKFLOWS, "daily", "default")
    assert cron.status["lastScheduledTime"] > "2026-01-02"


async def test_a_stopped_run_takes_its_pods_away(client: Client) -> None:
    spec = {
        "templates": {
            "main": {"graph": {"tasks": [{"name": "pod", "template": "pod"}]}},
            "pod": {"pod": {"template": {"spec": {"containers": CONTAINERS}}}},
        }
    }
    await client.create(PIPELINE_RUNS, {"metadata": {"name": "halt"}, "spec": spec}, "default")

    async def pods() -> list[str]:
        listing = await client.list(PODS, "default", label_selector=f"{RUN_LABEL}=halt")
        return [p.metadata.name for p in listing.items if p.metadata.deletion_timestamp is None]

    await eventually(pods, WITHIN, "its pod is there")
    await client.patch(PIPELINE_RUNS, "halt", {"spec": {"desired": "Stopped"}}, "default")

    async def stopped() -> bool:
        run = await client.get(PIPELINE_RUNS, "halt", "default")
        return run.status.phase == "Stopped" and not await pods()

    await eventually(stopped, WITHIN, "it is stopped")


async def test_a_new_version_of_a_model_starts_a_run(client: Client) -> None:
    run = {"spec": {"templates": {"main": {"inputs": ["uri"]}}}}
    run["spec"]["arguments"] = {"uri": "${{ event.uri }}"}
    spec = {"modelVersion": {"model": "faces"}, "run": run}
    await client.create(PIPELINE_TRIGGERS, {"metadata": {"name": "faces"}, "spec": spec}, "default")
    model = {"model": "faces", "version": "1", "uri": "s3://b/faces/1"}
    await client.create(MODEL_VERSIONS, {"metadata": {"name": "f-1"}, "spec": model}, "default")

    async def over() -> PipelineRun | None:
        listing = await client.list(PIPELINE_RUNS, "default", label_selector=TRIGGER_LABEL)
        return next((one for one in listing.items if one.status.completion_time), None)

    made = await eventually(over, WITHIN, "the run that it starts is over")
    assert made.status.phase == "Succeeded", made.status.message
    assert made.spec.arguments == {"uri": "s3://b/faces/1"}
    trigger = await client.get(PIPELINE_TRIGGERS, "faces", "default")
    assert trigger.status.last_run == made.metadata.name
