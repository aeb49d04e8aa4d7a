"""The controller of services on both servers; router and replicas are played by the test."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_cluster import KubeCluster
from tests.support.scheduler import PartProcess
from tests.support.waiting import eventually

from lockstep.api.core import CONTROLLER_REVISIONS, NAMESPACES, PODS, SERVICES, Pod
from lockstep.api.names import LEADS_TO_ANNOTATION, REVISION_LABEL, SYSTEM_NAMESPACE
from lockstep.api.resource import Resource
from lockstep.api.serving import ROUTERS, ROUTES
from lockstep.api.timestamp import show
from lockstep.api.wire import to_builtins
from lockstep.compat import dialects
from lockstep.compat.kserve.objects import (
    INFERENCE_GRAPHS,
    INFERENCE_POOLS,
    INFERENCE_SERVICES,
    LLM_SERVICES,
)
from lockstep.compat.leaderworkerset.kinds import LEADER_WORKER_SETS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.serve.core.revisions import KEPT

WITHIN = 90.0


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
        await ensure_foreign(found, dialects.manifests(["kserve", "leaderworkerset"]))
        config = server.data / "kubeconfigs" / "controllers.kubeconfig"
        controllers = PartProcess(config, part="controllers").start()
        with contextlib.suppress(AlreadyExists):
            await found.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        yield found
        with contextlib.suppress(NotFound):
            await found.delete(INFERENCE_SERVICES, "played", "default", propagation="Background")
        controllers.kill()


def service(word: str) -> dict[str, Any]:
    container = {"name": "kserve-container", "image": "none", "command": ["serve", word]}
    predictor = {"containers": [container], "minReplicas": 1, "canaryTrafficPercent": 20}
    return {"metadata": {"name": "played"}, "spec": {"predictor": predictor}}


async def play_router(client: Client, address: str) -> None:
    """Be a router that lives, at *address*."""
    with contextlib.suppress(NotFound):
        await client.delete(ROUTERS, "played", SYSTEM_NAMESPACE)
    spec = {"url": f"http://{address}", "address": address}
    await client.create(ROUTERS, {"metadata": {"name": "played"}, "spec": spec}, SYSTEM_NAMESPACE)
    status = {"status": {"renewedAt": show(time.time() + 3600)}}
    await client.patch(ROUTERS, "played", status, SYSTEM_NAMESPACE, subresource="status")


async def replicas(client: Client) -> dict[str, Pod]:
    """Return the replicas that do not end, by revision; each bears its number of the name."""
    listing = await client.list(
        PODS, "default", label_selector="serving.kserve.io/inferenceservice=played"
    )
    return {
        pod.metadata.labels[REVISION_LABEL]: pod
        for pod in listing.items
        if pod.metadata.deletion_timestamp is None
    }


async def play_ready(client: Client, revision: str) -> None:
    """Be the node of the replica of *revision*: it runs and is ready."""

    async def there() -> Pod | None:
        return (await replicas(client)).get(revision)

    pod = await eventually(there, WITHIN, f"a replica of {revision}")
    ready = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "podIP": "127.7.7.7", "conditions": [ready]}
    await client.patch(PODS, pod.metadata.name, {"status": status}, "default", subresource="status")


async def weights(client: Client) -> dict[str, int]:
    route = await client.get(ROUTES, "played", "default")
    return {one.revision: one.weight for one in route.spec.backends}


async def test_revisions_come_get_their_share_and_go(client: Client) -> None:
    await play_router(client, "127.0.0.81")
    await client.create(INFERENCE_SERVICES, service("a"), "default")
    first = "played-predictor-00001"
    await play_ready(client, first)

    async def told() -> bool:
        found = (await client.get(INFERENCE_SERVICES, "played", "default")).status
        return any(one.type == "Ready" and one.status == "True" for one in found.conditions)

    await eventually(told, WITHIN, "the service is ready")
    assert await weights(client) == {first: 100}

    patch = {"spec": service("b")["spec"]}
    await client.patch(INFERENCE_SERVICES, "played", patch, "default")
    second = "played-predictor-00002"
    await eventually(lambda: _has(client, second), WITHIN, "a replica of the second revision")
    assert await weights(client) == {first: 100}
    await play_ready(client, second)

    async def shared() -> bool:
        return await weights(client) == {first: 80, second: 20}

    await eventually(shared, WITHIN, "the canary has its share")
    patch["spec"]["predictor"]["canaryTrafficPercent"] = 100
    await client.patch(INFERENCE_SERVICES, "played", patch, "default")

    async def promoted() -> bool:
        return await weights(client) == {second: 100} and set(await replicas(client)) == {second}

    await eventually(promoted, WITHIN, "the canary has everything and the first is gone")
    patch["spec"]["predictor"]["canaryTrafficPercent"] = 20
    await client.patch(INFERENCE_SERVICES, "played", patch, "default")
    await play_ready(client, first)
    await eventually(shared, WITHIN, "a lower share goes back to the first revision")
    patch["spec"]["predictor"]["canaryTrafficPercent"] = 100
    await client.patch(INFERENCE_SERVICES, "played", patch, "default")
    await eventually(promoted, WITHIN, "the canary has everything again")

    await play_router(client, "127.0.0.82")

    async def led() -> bool:
        name = await client.get(SERVICES, "played", "default")
        return name.metadata.annotations.get(LEADS_TO_ANNOTATION) == "127.0.0.82"

    await eventually(led, WITHIN, "the service's name leads to the new router")
    await _forgets_old_revisions(client)


async def _has(client: Client, revision: str) -> bool:
    return revision in await replicas(client)


async def _forgets_old_revisions(client: Client) -> None:
    for number in range(KEPT + 3):
        patch = {"spec": service(f"more-{number}")["spec"]}
        await client.patch(INFERENCE_SERVICES, "played", patch, "default")
        name = f"played-predictor-{number + 3:05d}"
        await eventually(lambda name=name: _has(client, name), WITHIN, f"a replica of {name}")

    async def few() -> bool:
        kept = await client.list(
            CONTROLLER_REVISIONS, "default", label_selector="lockstep.dev/route"
        )
        found = (one.metadata.name for one in kept.items)
        names = {name for name in found if name.startswith("played-")}
        # Beside those that serve: the one that was ready last, and the newest.
        return len(names) <= KEPT + 2 and "played-predictor-00002" in names

    await eventually(few, WITHIN, "the oldest revisions are gone")


CONTAINERS = [{"name": "main", "image": "none", "command": ["serve"]}]
TEMPLATE = {"size": 1, "workerTemplate": {"spec": {"containers": CONTAINERS}}}
COMPOSED: list[tuple[Resource[Any], dict[str, Any]]] = [
    (LEADER_WORKER_SETS, {"replicas": 1, "leaderWorkerTemplate": TEMPLATE}),
    (
        LLM_SERVICES,
        {
            "model": {"uri": "s3://b/m"},
            "template": {"containers": CONTAINERS},
            "router": {"scheduler": {"replicas": 2}},
            "unheard": 1,
        },
    ),
    (
        INFERENCE_GRAPHS,
        {"nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceName": "played"}]}}},
    ),
]


@pytest.mark.parametrize(
    ("resource", "spec"), COMPOSED, ids=[resource.plural for resource, _ in COMPOSED]
)
async def test_kinds_made_of_services_tell_how_these_stand(
    client: Client, resource: Resource[Any], spec: dict[str, Any]
) -> None:
    name = f"of-{resource.plural}"

    async def created() -> bool:
        with contextlib.suppress(NotFound):
            await client.create(resource, {"metadata": {"name": name}, "spec": spec}, "default")
            return True
        return False

    await eventually(created, WITHIN, "the kind is served")

    async def told() -> list[dict[str, Any]]:
        status = to_builtins((await client.get(resource, name, "default")).status)
        return list(status.get("conditions") or [])

    conditions = await eventually(told, WITHIN, "its status says how it stands")
    if resource is LLM_SERVICES:
        [honoured] = [one for one in conditions if one["type"] == "SpecHonoured"]
        assert "spec.router.scheduler.replicas: " in honoured["message"]
        assert "spec.unheard: " in honoured["message"]
    await client.delete(resource, name, "default", propagation="Background")


async def test_route_and_name_of_the_predictor_go_with_the_transformer(client: Client) -> None:
    await play_router(client, "127.0.0.81")
    spec = {"predictor": {"containers": CONTAINERS}, "transformer": {"containers": CONTAINERS}}
    body = {"metadata": {"name": "played"}, "spec": spec}
    await client.create(INFERENCE_SERVICES, body, "default")

    async def there() -> int:
        found = 0
        for res in (ROUTES, SERVICES):
            with contextlib.suppress(NotFound):
                await client.get(res, "played-predictor", "default")
                found += 1
        return found

    async def both() -> bool:
        return await there() == 2

    async def neither() -> bool:
        return await there() == 0

    await eventually(both, WITHIN, "the predictor has a route and a name of its own")
    await client.patch(INFERENCE_SERVICES, "played", {"spec": {"transformer": None}}, "default")
    await eventually(neither, WITHIN, "they are gone")


async def test_pods_of_an_inference_pool_become_backends(client: Client) -> None:
    spec = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}
    await client.create(INFERENCE_POOLS, {"metadata": {"name": "llms"}, "spec": spec}, "default")
    container = {"name": "c", "image": "none", "command": ["serve"]}
    body = {
        "metadata": {"name": "llm-0", "labels": {"app": "vllm"}},
        "spec": {"containers": [container], "schedulerName": "lockstep"},
    }
    await client.create(PODS, body, "default")

    async def chosen() -> bool:
        pod = await client.get(PODS, "llm-0", "default")
        route = await client.get(ROUTES, "llms", "default")
        [backend] = route.spec.backends
        return pod.metadata.labels.get(REVISION_LABEL) == backend.revision == "llms"

    async def told() -> bool:
        with contextlib.suppress(NotFound, KeyError, ValueError):
            status = (await client.get(INFERENCE_POOLS, "llms", "default")).status
            [parent] = status["parents"]
            return await chosen() and all(one["status"] == "True" for one in parent["conditions"])
        return False

    await eventually(told, WITHIN, "the pod is a backend of the pool's route")
    await client.patch(PODS, "llm-0", {"metadata": {"labels": {"app": "other"}}}, "default")

    async def left() -> bool:
        return not await chosen()

    await eventually(left, WITHIN, "it is none any more")
    await client.delete(PODS, "llm-0", "default", grace_seconds=0)
    await client.delete(INFERENCE_POOLS, "llms", "default", propagation="Background")
