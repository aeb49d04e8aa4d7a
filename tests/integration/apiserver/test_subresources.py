"""Binding, eviction, logs, scale and the other parts of an object that have a path of their own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync

MERGE = "application/merge-patch+json"
RESIZED_IN_PLACE = {"resourceName": "cpu", "restartPolicy": "NotRequired"}
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def pod(api: ApiServer, name: str, node: str = "", containers: int = 1, **labels: str) -> Any:
    spec = {"containers": [{"name": f"c{n}", "image": "none"} for n in range(containers)]}
    made = api.request("POST", PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    assert made.status == 201, made.body
    if node:
        binding = {"target": {"kind": "Node", "name": node}}
        assert api.request("POST", f"{PODS}/{name}/binding", binding).status == 201
    return made.json


def ready(api: ApiServer, name: str) -> None:
    condition = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "conditions": [condition]}}
    answer = api.request("PATCH", f"{PODS}/{name}/status", status, content_type=MERGE)
    assert answer.status == 200, answer.body


def test_a_binding_sets_the_node_and_leaves_its_annotations(shared_server: ApiServer) -> None:
    made = pod(shared_server, "bound")
    binding = {
        "metadata": {
            "name": "bound",
            "uid": made["metadata"]["uid"],
            "annotations": {"lockstep.dev/gpus": "0,1"},
        },
        "target": {"kind": "Node", "name": "n1"},
    }
    assert shared_server.request("POST", f"{PODS}/bound/binding", binding).status == 201
    after = shared_server.request("GET", f"{PODS}/bound").json
    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"] == {"lockstep.dev/gpus": "0,1"}
    (condition,) = after["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


REFUSED_BINDINGS = [
    ("bound already", {"target": {"name": "n2"}}, 409, 'already assigned to node "n1"'),
    ("of another uid", {"metadata": {"uid": "no"}, "target": {"name": "n2"}}, 409, "UID"),
    ("without a target", {}, 500, "target.name: Required value"),
]


@pytest.mark.parametrize(
    ("binding", "code", "message"),
    [r[1:] for r in REFUSED_BINDINGS],
    ids=[r[0] for r in REFUSED_BINDINGS],
)
def test_bindings_that_are_refused(
    shared_server: ApiServer, binding: Any, code: int, message: str
) -> None:
    if shared_server.request("GET", f"{PODS}/once").status == 404:
        pod(shared_server, "once", "n1")
    answer = shared_server.request("POST", f"{PODS}/once/binding", binding)
    assert answer.status == code
    assert message in answer.json["message"]


def test_the_older_binding_call_names_the_pod_in_its_body(shared_server: ApiServer) -> None:
    pod(shared_server, "older")
    binding = {"metadata": {"name": "older"}, "target": {"name": "n3"}}
    answer = shared_server.request("POST", "/api/v1/namespaces/default/bindings", binding)
    assert answer.status == 201
    assert shared_server.request("GET", f"{PODS}/older").json["spec"]["nodeName"] == "n3"


BUDGET_CASES = [
    ({"minAvailable": 2}, 2, 429),
    ({"minAvailable": 1}, 2, 201),
    ({"minAvailable": "100%"}, 2, 429),
    ({"maxUnavailable": 1}, 2, 201),
    ({"maxUnavailable": 0}, 2, 429),
    ({"maxUnavailable": "50%"}, 2, 201),
    ({"minAvailable": 1}, 1, 429),
]


@pytest.mark.parametrize(("budget", "healthy", "code"), BUDGET_CASES)
def test_evictions_keep_to_the_budget(
    shared_server: ApiServer, budget: dict[str, Any], healthy: int, code: int
) -> None:
    app = f"app{BUDGET_CASES.index((budget, healthy, code))}"
    spec = {**budget, "selector": {"matchLabels": {"app": app}}}
    made = shared_server.request("POST", BUDGETS, {"metadata": {"name": app}, "spec": spec})
    assert made.status == 201, made.body
    for number in range(2):
        pod(shared_server, f"{app}-{number}", "n1", app=app)
        if number < healthy:
            ready(shared_server, f"{app}-{number}")
    eviction = {"metadata": {"name": f"{app}-0"}}
    answer = shared_server.request("POST", f"{PODS}/{app}-0/eviction", eviction)
    assert answer.status == code, answer.body
    if code == 429:
        assert answer.json["reason"] == "TooManyRequests"
        assert answer.headers["Retry-After"] == "10"
        assert answer.json["details"]["causes"][0]["reason"] == "DisruptionBudget"
    else:
        after = shared_server.request("GET", f"{PODS}/{app}-0").json
        assert after["metadata"]["deletionTimestamp"]
        said = {c["type"]: c.get("reason") for c in after["status"]["conditions"]}
        assert said["DisruptionTarget"] == "EvictionByEvictionAPI"


def test_a_budget_says_how_many_disruptions_it_allows(shared_server: ApiServer) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "counted"}}}
    shared_server.request("POST", BUDGETS, {"metadata": {"name": "counted"}, "spec": spec})

    def says(healthy: int, allowed: int) -> bool:
        status = shared_server.request("GET", f"{BUDGETS}/counted").json.get("status", {})
        found = status.get("currentHealthy"), status.get("disruptionsAllowed")
        return found == (healthy, allowed)

    for number in range(3):
        pod(shared_server, f"counted-{number}", "n1", app="counted")
        ready(shared_server, f"counted-{number}")
        eventually_sync(lambda number=number: says(number + 1, number), what="the count")
    shared_server.request("DELETE", f"{PODS}/counted-0?gracePeriodSeconds=0")
    eventually_sync(lambda: says(2, 1), what="the count after a deletion")


def test_resize_reaches_nothing_but_resources(shared_server: ApiServer) -> None:
    pod(shared_server, "resized", "n1")
    container = {"name": "c0", "image": "other", "resizePolicy": [RESIZED_IN_PLACE]}
    patch = {"spec": {"containers": [container]}}
    kind = "application/strategic-merge-patch+json"
    after = shared_server.request("PATCH", f"{PODS}/resized/resize", patch, content_type=kind)
    assert after.status == 200, after.body
    found = after.json["spec"]["containers"][0]
    assert (found["image"], found["resizePolicy"]) == ("none", [RESIZED_IN_PLACE])


def test_a_resize_keeps_the_quality_of_service(shared_server: ApiServer) -> None:
    pod(shared_server, "steady", "n1")
    container = {"name": "c0", "resources": {"requests": {"cpu": "2"}}}
    patch = {"spec": {"containers": [container]}}
    kind = "application/strategic-merge-patch+json"
    after = shared_server.request("PATCH", f"{PODS}/steady/resize", patch, content_type=kind)
    assert (after.status, after.json["reason"]) == (422, "Invalid")


def test_ephemeral_containers_are_added_through_their_subresource(
    shared_server: ApiServer,
) -> None:
    pod(shared_server, "debugged", "n1")
    patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "tools"}]}}
    kind = "application/strategic-merge-patch+json"
    path = f"{PODS}/debugged/ephemeralcontainers"
    after = shared_server.request("PATCH", path, patch, content_type=kind)
    assert after.status == 200, after.body
    assert [c["name"] for c in after.json["spec"]["ephemeralContainers"]] == ["debug"]


@pytest.fixture
async def kubelet(shared_server: ApiServer) -> AsyncIterator[int]:
    """The log endpoint of a node's agent, which asks for the server's client certificate."""

    async def logs(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(f"{request.match_info['container']}\n".encode())
        await response.write("&".join(f"{k}={v}" for k, v in request.query.items()).encode())
        return response

    pki = shared_server.data / "pki"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
    context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", logs)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port: int = runner.addresses[0][1]
    node = {
        "metadata": {"generateName": "node-"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }
    made = shared_server.request("POST", "/api/v1/nodes", node)
    assert made.status == 201, made.body
    yield made.json["metadata"]["name"]
    await runner.cleanup()


async def test_logs_come_from_the_pods_node(shared_server: ApiServer, kubelet: str) -> None:
    pod(shared_server, "talks", kubelet)
    answer = await asyncio.to_thread(
        shared_server.request, "GET", f"{PODS}/talks/log?tailLines=5&follow=true&other=1"
    )
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain")
    assert answer.body == b"c0\ntailLines=5&follow=true"


REFUSED_LOGS = [
    ("absent", 0, "", "", 404, 'pods "absent" not found'),
    ("two", 2, "n1", "", 400, "a container name must be specified for pod two, choose one of"),
    ("misnamed", 1, "n1", "?container=x", 400, "container x is not valid for pod misnamed"),
    ("lost", 1, "nowhere", "", 404, 'nodes "nowhere" not found'),
]


@pytest.mark.parametrize(
    ("name", "containers", "node", "query", "code", "message"),
    REFUSED_LOGS,
    ids=[r[0] for r in REFUSED_LOGS],
)
def test_logs_that_are_refused(
    shared_server: ApiServer,
    *,
    name: str,
    containers: int,
    node: str,
    query: str,
    code: int,
    message: str,
) -> None:
    if containers:
        pod(shared_server, name, node, containers)
    answer = shared_server.request("GET", f"{PODS}/{name}/log{query}")
    assert answer.status == code
    assert message in answer.json["message"]
