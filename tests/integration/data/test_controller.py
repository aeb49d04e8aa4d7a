"""The controller of datasets on both servers; the node's cache is played by the test."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_cluster import KubeCluster
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually

from lockstep.api.core import CLAIMS, NAMESPACES, NODES, PODS, VOLUMES
from lockstep.api.dataset_cache import CAN_CACHE_LABEL, DATASET_CACHES, DatasetCache
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.compat import dialects
from lockstep.compat.fluid.objects import (
    DATA_LOADS,
    DATA_PROCESSES,
    DATASETS,
    RUNTIME_KINDS,
    Dataset,
    Runtime,
)
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import AlreadyExists, NotFound

WITHIN = 90.0
NODE = "data-node"
SPACE = "default"


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
        await ensure_foreign(found, dialects.manifests(["fluid", "kserve"]))
        config = server.data / "kubeconfigs" / "controllers.kubeconfig"
        with contextlib.suppress(AlreadyExists):
            await found.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        labels = {CAN_CACHE_LABEL: "true"}
        with contextlib.suppress(AlreadyExists):
            await found.create(NODES, {"metadata": {"name": NODE, "labels": labels}})
        controllers = PartProcess(config, part="controllers").start()
        yield found
        controllers.kill()
        await found.delete(NODES, NODE)


async def make(client: Client, kind: Any, name: str, **runtime: Any) -> None:
    mount = {"mountPoint": "https://example.org/files", "name": name}
    dataset = {"metadata": {"name": name}, "spec": {"mounts": [mount]}}
    await client.create(DATASETS, dataset, SPACE)
    spec = {"replicas": 1, **runtime}
    await client.create(kind, {"metadata": {"name": name}, "spec": spec}, SPACE)


async def cache(client: Client, name: str) -> DatasetCache | None:
    try:
        return await client.get(DATASET_CACHES, f"{name}.{NODE}", SPACE)
    except NotFound:
        return None


async def play(client: Client, name: str, **status: Any) -> None:
    """Be the node's cache: say *status* once it is asked for something."""
    await eventually(lambda: cache(client, name), WITHIN, f"a cache of {name} is asked for")
    body = {"status": status}
    await client.patch(DATASET_CACHES, f"{name}.{NODE}", body, SPACE, subresource="status")


async def phase(client: Client, resource: Any, name: str, wanted: str) -> Any:
    async def look() -> Any:
        found = await client.get(resource, name, SPACE)
        return found if found.status.phase == wanted else None

    return await eventually(look, WITHIN, f"{name} is {wanted}")


async def gone(client: Client, resource: Any, name: str, space: str | None) -> None:
    async def look() -> bool:
        try:
            await client.get(resource, name, space)
        except NotFound:
            return True
        return False

    await eventually(look, WITHIN, f"{name} is gone")


@pytest.mark.parametrize("kind", RUNTIME_KINDS, ids=lambda kind: str(kind.kind))
async def test_a_dataset_is_bound_warmed_and_removed(client: Client, kind: Any) -> None:
    name = kind.kind.lower()
    await make(client, kind, name)
    await play(client, name, listed="v1", files=2, bytes=10)
    bound: Dataset = await phase(client, DATASETS, name, "Bound")
    assert (bound.status.file_num, bound.status.ufs_total) == ("2", "10.00B")

    async def claimed() -> bool:
        found = [
            await client.get(CLAIMS, name, SPACE),
            await client.get(VOLUMES, f"{SPACE}-{name}"),
        ]
        return [one.status.get("phase") for one in found] == ["Bound", "Bound"]

    await eventually(claimed, WITHIN, "claim and volume are bound")
    load = {"metadata": {"name": name}, "spec": {"dataset": {"name": name}}}
    await client.create(DATA_LOADS, load, SPACE)

    async def targeted() -> bool:
        found = await cache(client, name)
        return found is not None and (found.spec.version, found.spec.targets) == ("v1", ["/"])

    await eventually(targeted, WITHIN, "all files are asked for")
    half = {"files": 2, "bytes": 10, "cachedFiles": 1, "cachedBytes": 5}
    await play(client, name, version="v1", phase="Loading", targets={"/": half}, cachedBytes=5)

    async def halfway() -> bool:
        found = await client.get(DATA_LOADS, name, SPACE)
        return found.status.infos.get("progress") == "49%"

    await eventually(halfway, WITHIN, "the progress is told")
    whole = {"files": 2, "bytes": 10, "cachedFiles": 2, "cachedBytes": 10}
    await play(client, name, phase="Ready", targets={"/": whole}, cachedFiles=2, cachedBytes=10)
    done = await phase(client, DATA_LOADS, name, "Complete")
    assert done.status.infos["progress"] == "100%"
    runtime: Runtime = await client.get(kind, name, SPACE)
    assert runtime.status.current_worker_number_scheduled == 1

    await client.delete(DATASETS, name, SPACE)
    await gone(client, DATASETS, name, SPACE)
    await gone(client, VOLUMES, f"{SPACE}-{name}", None)
    await gone(client, CLAIMS, name, SPACE)
    await gone(client, DATASET_CACHES, f"{name}.{NODE}", SPACE)
    await client.delete(kind, name, SPACE)
    await client.delete(DATA_LOADS, name, SPACE)


async def test_a_dataset_stays_while_a_pod_mounts_it(client: Client) -> None:
    name, kind = "mounted", RUNTIME_KINDS[0]
    await make(client, kind, name)
    await play(client, name, listed="v1", files=0, bytes=0)
    await phase(client, DATASETS, name, "Bound")
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    container = {"name": "main", "image": "none", "command": ["true"]}
    spec = {"containers": [container], "volumes": [volume], "nodeName": NODE}
    await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, SPACE)

    async def read() -> bool:
        found = await cache(client, name)
        return found is not None and found.spec.reading

    await eventually(read, WITHIN, "the controller has seen the pod")
    await client.delete(DATASETS, name, SPACE)

    async def said() -> bool:
        found = await client.get(DATASETS, name, SPACE)
        return any(one.reason == "InUse" for one in found.status.conditions)

    await eventually(said, WITHIN, "it says what it waits for")
    await client.delete(PODS, name, SPACE, grace_seconds=0)
    await gone(client, DATASETS, name, SPACE)
    await client.delete(kind, name, SPACE)


async def test_a_runtime_that_cannot_be_honoured_fails_the_dataset(client: Client) -> None:
    level = {"mediumtype": "SSD", "quota": "1Gi", "high": "0.5", "low": "0.9"}
    await make(client, RUNTIME_KINDS[0], "crossed", tieredstore={"levels": [level]})
    failed: Dataset = await phase(client, DATASETS, "crossed", "Failed")
    assert "low must be below high" in failed.status.conditions[0].message
    await client.delete(DATASETS, "crossed", SPACE)
    await client.delete(RUNTIME_KINDS[0], "crossed", SPACE)


async def test_a_process_runs_a_pod_over_a_dataset(client: Client) -> None:
    name, kind = "processed", RUNTIME_KINDS[0]
    await make(client, kind, name)
    await play(client, name, listed="v1", files=0, bytes=0)
    await phase(client, DATASETS, name, "Bound")
    container = {"name": "main", "image": "none", "command": ["true"]}
    job = {"podSpec": {"containers": [container], "restartPolicy": "Never"}}
    where = {"name": name, "namespace": SPACE, "mountPath": "/data"}
    spec = {"dataset": where, "processor": {"job": job}}
    await client.create(DATA_PROCESSES, {"metadata": {"name": name}, "spec": spec}, SPACE)

    async def complete() -> bool:
        for one in (await client.list(PODS, SPACE)).items:
            if name in one.metadata.name:
                done = {"status": {"phase": "Succeeded"}}
                with contextlib.suppress(NotFound):
                    await client.patch(PODS, one.metadata.name, done, SPACE, subresource="status")
        return (await client.get(DATA_PROCESSES, name, SPACE)).status.phase == "Complete"

    await eventually(complete, WITHIN, "its pod has succeeded, and so it is complete")
    await client.delete(DATA_PROCESSES, name, SPACE, propagation="Background")
    await client.delete(DATASETS, name, SPACE)
    await gone(client, DATASETS, name, SPACE)
    await client.delete(kind, name, SPACE)
