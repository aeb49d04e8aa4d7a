"""Small programs with other people's Python clients, on the embedded API server."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import kr8s
import kr8s.asyncio
import kubernetes
import lightkube
import pytest
import yaml
from lightkube.core.exceptions import ApiError
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod
from lightkube.types import PatchType
from tests.support.apiserver import ApiServer
from tests.support.waiting import stretched
from tools.deploy.generate import CHART

# kr8s warns of every server newer than itself, and leaves a stream open when a watch is left.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CRDS = CHART / "files" / "crds.yaml"
GANG: dict[str, Any] = {
    "apiVersion": "lockstep.dev/v1alpha1",
    "kind": "Gang",
    "spec": {"minMember": 2},
}


@pytest.fixture(scope="module", autouse=True)
def crds(shared_server: ApiServer) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in yaml.safe_load_all(CRDS.read_text()):
        assert shared_server.request("POST", path, crd).status == 201


@pytest.fixture
def light(shared_server: ApiServer) -> lightkube.Client:
    config = lightkube.KubeConfig.from_file(str(shared_server.kubeconfig))
    return lightkube.Client(config=config)


def test_lightkube_creates_lists_patches_and_deletes(light: lightkube.Client) -> None:
    light.create(Namespace(metadata=ObjectMeta(name="light")))
    for i in range(3):
        spec = PodSpec(containers=[Container(name="main", image="x")])
        meta = ObjectMeta(name=f"p{i}", namespace="light", labels={"n": str(i)})
        created = light.create(Pod(metadata=meta, spec=spec))
        assert created.status is not None
        assert created.status.phase == "Pending"
    found = light.list(Pod, namespace="light", labels={"n": "1"})
    assert [p.metadata.name for p in found if p.metadata] == ["p1"]
    assert len(list(light.list(Pod, namespace="light", chunk_size=1))) == 3
    patched = light.patch(
        Pod,
        "p0",
        {"metadata": {"labels": {"a": "b"}}},
        namespace="light",
        patch_type=PatchType.MERGE,
    )
    assert patched.metadata is not None
    assert patched.metadata.labels == {"n": "0", "a": "b"}
    light.delete(Pod, "p0", namespace="light", grace_period=0)
    with pytest.raises(ApiError, match="not found"):
        light.get(Pod, "p0", namespace="light")


def test_lightkube_applies_and_sees_a_conflict(light: lightkube.Client) -> None:
    mine = ConfigMap(metadata=ObjectMeta(name="c", namespace="default"), data={"a": "1"})
    light.apply(mine, field_manager="one")
    theirs = ConfigMap(metadata=ObjectMeta(name="c", namespace="default"), data={"a": "2"})
    with pytest.raises(ApiError, match="conflict"):
        light.apply(theirs, field_manager="two")
    assert light.apply(theirs, field_manager="two", force=True).data == {"a": "2"}


def test_lightkube_watches_from_a_version_on(light: lightkube.Client) -> None:
    base = light.create(ConfigMap(metadata=ObjectMeta(name="w", namespace="default")))
    assert base.metadata is not None
    for i in range(5):
        light.patch(ConfigMap, "w", {"data": {"i": str(i)}}, patch_type=PatchType.MERGE)
    light.delete(ConfigMap, "w")
    seen: list[tuple[str, str | None]] = []
    version = base.metadata.resourceVersion
    events = light.watch(
        ConfigMap, fields={"metadata.name": "w"}, resource_version=version, server_timeout=20
    )
    for kind, obj in events:
        seen.append((kind, (obj.data or {}).get("i")))
        if kind == "DELETED":
            break
    assert seen == [*(("MODIFIED", str(i)) for i in range(5)), ("DELETED", "4")]


async def test_kr8s_finds_our_kinds_by_discovery(shared_server: ApiServer) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(shared_server.kubeconfig))
    resources = await api.api_resources()
    assert {"Gang", "TrainingJob", "Pod", "Deployment"} <= {r["kind"] for r in resources}
    gang_type = kr8s.asyncio.objects.new_class("Gang", "lockstep.dev/v1alpha1", asyncio=True)
    gang = await gang_type({**GANG, "metadata": {"name": "by-kr8s"}}, api=api)
    await gang.create()
    await gang.refresh()
    assert gang.spec.queue == "default"
    await gang.patch({"metadata": {"labels": {"a": "b"}}})
    names = [g.name async for g in api.get("gangs.lockstep.dev", label_selector="a=b")]
    assert names == ["by-kr8s"]
    await gang.delete()
    await gang.wait("delete", timeout=stretched(20))
    assert not await gang.exists()


async def test_kr8s_watches(shared_server: ApiServer) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(shared_server.kubeconfig))
    maps = [
        await kr8s.asyncio.objects.ConfigMap(
            {"metadata": {"name": f"k{i}", "namespace": "default"}, "data": {"i": str(i)}}, api=api
        )
        for i in range(3)
    ]
    seen: set[str] = set()

    async def follow() -> None:
        async for kind, obj in api.watch("configmaps", namespace="default"):
            if kind == "ADDED" and obj.name.startswith("k"):
                seen.add(obj.name)
            if len(seen) == 3:
                return

    watching = asyncio.create_task(follow())
    for config in maps:
        await config.create()
    await asyncio.wait_for(watching, stretched(20))
    assert seen == {"k0", "k1", "k2"}


@pytest.fixture
def official(shared_server: ApiServer) -> kubernetes.client.ApiClient:
    return kubernetes.config.new_client_from_config(str(shared_server.kubeconfig))


def test_the_official_client_reads_typed_objects(
    official: kubernetes.client.ApiClient,
) -> None:
    core = kubernetes.client.CoreV1Api(official)
    body = {
        "metadata": {"generateName": "made-"},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    pod = core.create_namespaced_pod("default", body)
    assert pod.metadata.name.startswith("made-")
    assert pod.spec.restart_policy == "Always"
    page = core.list_namespaced_pod("default", limit=1)
    assert len(page.items) == 1
    core.patch_namespaced_pod(pod.metadata.name, "default", {"metadata": {"labels": {"x": "y"}}})
    found = core.list_pod_for_all_namespaces(label_selector="x=y").items
    assert [p.metadata.name for p in found] == [pod.metadata.name]
    core.delete_namespaced_pod(pod.metadata.name, "default", grace_period_seconds=0)
    with pytest.raises(kubernetes.client.exceptions.ApiException) as error:
        core.read_namespaced_pod(pod.metadata.name, "default")
    assert error.value.status == 404


def test_the_official_client_handles_custom_objects(
    official: kubernetes.client.ApiClient,
) -> None:
    custom = kubernetes.client.CustomObjectsApi(official)
    at = ("lockstep.dev", "v1alpha1", "default", "gangs")
    custom.create_namespaced_custom_object(*at, {**GANG, "metadata": {"name": "custom"}})
    patched = custom.patch_namespaced_custom_object(*at, "custom", {"spec": {"minMember": 3}})
    assert patched["metadata"]["generation"] == 2
    with pytest.raises(kubernetes.client.exceptions.ApiException) as error:
        custom.patch_namespaced_custom_object(*at, "custom", {"spec": {"minMember": -1}})
    assert error.value.status == 422
    custom.delete_namespaced_custom_object(*at, "custom")


def test_the_official_clients_watch_sees_every_change(
    official: kubernetes.client.ApiClient,
) -> None:
    core = kubernetes.client.CoreV1Api(official)
    start = core.list_namespaced_config_map("default").metadata.resource_version
    seen: list[str] = []

    def follow() -> None:
        watch = kubernetes.watch.Watch()
        for event in watch.stream(
            core.list_namespaced_config_map,
            "default",
            resource_version=start,
            timeout_seconds=20,
        ):
            name = event["object"].metadata.name
            if name.startswith("o"):
                seen.append(f"{event['type']} {name}")
            if len(seen) == 20:
                watch.stop()

    thread = threading.Thread(target=follow)
    thread.start()
    for i in range(10):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"o{i}"}})
        core.delete_namespaced_config_map(f"o{i}", "default")
    thread.join(25)
    assert seen == [f"{what} o{i}" for i in range(10) for what in ("ADDED", "DELETED")]
