"""Other people's clients, each doing what its users do."""

from __future__ import annotations

import threading
from typing import Any

from tests.support.apiserver import ApiServer

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "theirs", "namespace": "default", "labels": {"app": "theirs"}},
    "spec": {"containers": [{"name": "main", "image": "none"}]},
}


def test_the_official_client(server: ApiServer) -> None:
    import kubernetes
    from kubernetes import client, watch

    configuration = client.Configuration()
    kubernetes.config.load_kube_config(str(server.kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as api:
        core = client.CoreV1Api(api)
        made = core.create_namespaced_pod("default", POD)
        assert made.status.phase == "Pending"
        core.patch_namespaced_pod("theirs", "default", {"metadata": {"labels": {"x": "y"}}})
        found = core.list_namespaced_pod("default", label_selector="x=y").items
        assert [pod.metadata.name for pod in found] == ["theirs"]
        stream = watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=1)
        assert [(e["type"], e["object"].metadata.name) for e in stream] == [("ADDED", "theirs")]
        try:
            core.read_namespaced_pod("absent", "default")
        except client.ApiException as error:
            assert error.status == 404
        core.delete_namespaced_pod("theirs", "default")
        assert core.list_namespaced_pod("default").items == []


def test_lightkube(server: ApiServer) -> None:
    from lightkube import Client, KubeConfig
    from lightkube.models.core_v1 import Container, PodSpec
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import Pod
    from lightkube.types import PatchType

    config = KubeConfig.from_file(str(server.kubeconfig))
    lightkube = Client(config=config, field_manager="lightkube", namespace="default")
    spec = PodSpec(containers=[Container(name="main", image="none")])
    lightkube.create(Pod(metadata=ObjectMeta(name="theirs"), spec=spec))
    labels = {"metadata": {"labels": {"x": "y"}}}
    for kind in (PatchType.STRATEGIC, PatchType.MERGE):
        assert lightkube.patch(Pod, "theirs", labels, patch_type=kind).metadata.labels == {"x": "y"}
    assert [p.metadata.name for p in lightkube.list(Pod, labels={"x": "y"})] == ["theirs"]
    lightkube.delete(Pod, "theirs")
    assert list(lightkube.list(Pod)) == []


async def test_kr8s(server: ApiServer) -> None:
    import kr8s
    from kr8s.asyncio.objects import Pod

    api = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
    pod = await Pod(POD, api=api)
    await pod.create()
    await pod.label(x="y")
    found = [p.name async for p in api.get("pods", namespace="default", label_selector="x=y")]
    assert found == ["theirs"]
    assert (await api.version())["major"] == "1"
    await pod.delete()
    assert not await pod.exists()


async def test_our_own(server: ApiServer) -> None:
    from lockstep.api.core import PODS

    async with server.client() as client:
        made = await client.create(PODS, POD, "default")
        assert made.status.phase == "Pending"
        listing = await client.list(PODS, "default", label_selector="app=theirs")
        assert [pod.metadata.name for pod in listing.items] == ["theirs"]
        await client.bind("default", "theirs", "n1", uid=made.metadata.uid, annotations={"a": "b"})
        bound = await client.get(PODS, "theirs", "default")
        assert (bound.spec.node_name, bound.metadata.annotations) == ("n1", {"a": "b"})
        await client.delete(PODS, "theirs", "default", grace_seconds=0)
        assert (await client.list(PODS, "default")).items == []


def test_many_writers_of_one_object_lose_no_change(server: ApiServer) -> None:
    """Each reads, adds one and replaces; a conflict sends it back to reading."""
    path = "/api/v1/namespaces/default/configmaps/counter"
    server.request("POST", path.rpartition("/")[0], {"metadata": {"name": "counter"},
                                                      "data": {"n": "0"}})  # fmt: skip

    def count(times: int) -> None:
        connection = server.connect()
        while times:
            obj = server.request("GET", path, connection=connection).json
            obj["data"]["n"] = str(int(obj["data"]["n"]) + 1)
            answer = server.request("PUT", path, obj, connection=connection)
            assert answer.status in (200, 409), answer.body
            times -= answer.status == 200
        connection.close()

    writers = [threading.Thread(target=count, args=(10,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert server.request("GET", path).json["data"]["n"] == "40"
