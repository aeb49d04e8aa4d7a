"""Stand-ins for what makes nodes: Karpenter, cluster-autoscaler and a cloud behind an HTTP hook.

None of them is the real one. They speak the real kinds (as far as pools use them) and may have
nothing in stock; their nodes are Node objects that say that they are ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from lockstep.api.core import CRDS, NODES
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound

Json = dict[str, Any]
PACE = 0.05
CAPACITY = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
REQUESTS = "/apis/autoscaling.x-k8s.io/v1"
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_IMMUTABLE = [{"rule": "self == oldSelf", "message": "spec is immutable"}]
KINDS = {
    # plural: group, version, kind, scope, what its spec must have
    "nodeclaims": ("karpenter.sh", "v1", "NodeClaim", "Cluster", ["nodeClassRef", "requirements"]),
    "provisioningrequests": (
        "autoscaling.x-k8s.io",
        "v1",
        "ProvisioningRequest",
        "Namespaced",
        ["podSets", "provisioningClassName"],
    ),
}


def _crd(plural: str) -> Json:
    group, version, kind, scope, required = KINDS[plural]
    spec = {**_ANY, "required": required, "x-kubernetes-validations": _IMMUTABLE}
    schema = {"type": "object", "properties": {"spec": spec, "status": _ANY}}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def install(client: Client) -> None:
    """Create the kinds of Karpenter and cluster-autoscaler."""
    for plural in KINDS:
        with contextlib.suppress(AlreadyExists):
            await client.create(CRDS, _crd(plural))
    for path in (CLAIMS, f"{REQUESTS}/provisioningrequests"):
        while True:
            with contextlib.suppress(NotFound):
                await client.get_raw(path)
                break
            await asyncio.sleep(PACE)


async def add_node(client: Client, name: str, labels: Json, taints: list[Json]) -> None:
    """Create a node that is ready."""
    own = {"kubernetes.io/hostname": name, **labels}
    body = {"metadata": {"name": name, "labels": own}, "spec": {"taints": taints}}
    with contextlib.suppress(AlreadyExists):
        await client.create(NODES, body)
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": ready}
    await client.patch(NODES, name, {"status": status}, subresource="status")
    keys = ("node.kubernetes.io/not-ready",)
    node = await client.get(NODES, name)
    if any(taint.key in keys for taint in node.spec.taints):
        await client.patch(NODES, name, {"spec": {"taints": taints or None}})


@contextlib.asynccontextmanager
async def running(work: Any) -> AsyncIterator[None]:
    """Run a stand-in while the block runs."""

    async def go_on() -> None:
        while True:
            with contextlib.suppress(ApiError):
                await work()
            await asyncio.sleep(PACE)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Karpenter:
    """Makes a node for each claim; without stock it withdraws the claims, as the real one does."""

    def __init__(self, client: Client, *, stock: bool = True) -> None:
        self._client = client
        self._stock = stock
        self._made: set[str] = set()

    async def look(self) -> None:
        claims = json.loads(await self._client.get_raw(CLAIMS))["items"]
        names = {claim["metadata"]["name"]: claim for claim in claims}
        for name, claim in names.items():
            if not self._stock:
                await self._client.request("DELETE", f"{CLAIMS}/{name}")
            elif name not in self._made:
                taints = claim["spec"].get("taints", [])
                labels = claim["metadata"]["labels"] | {"karpenter.sh/registered": "true"}
                await add_node(self._client, f"ip-{name}", labels, taints)
                self._made.add(name)
        for name in self._made - names.keys():
            with contextlib.suppress(NotFound):
                await self._client.delete(NODES, f"ip-{name}")
            self._made.discard(name)


class Autoscaler:
    """Adds the nodes of a whole request at once or fails it; removes nodes that are let go."""

    def __init__(self, client: Client, labels: Json, *, stock: bool = True) -> None:
        self._client = client
        self._labels = labels
        self._stock = stock
        self._done: set[str] = set()

    async def look(self) -> None:
        found = await self._client.get_raw(f"{REQUESTS}/provisioningrequests")
        for request in json.loads(found)["items"]:
            name = request["metadata"]["name"]
            if name not in self._done:
                await self._serve(request)
                self._done.add(name)
        for node in (await self._client.list(NODES)).items:
            let_go = node.spec.unschedulable and "lockstep.dev/pool" not in node.metadata.labels
            if let_go and node.metadata.name.startswith("ca-"):
                await self._client.delete(NODES, node.metadata.name)

    async def _serve(self, request: Json) -> None:
        meta, spec = request["metadata"], request["spec"]
        path = f"/api/v1/namespaces/{meta['namespace']}/podtemplates/"
        for pod_set in spec["podSets"]:
            template = pod_set["podTemplateRef"]["name"]
            found = json.loads(await self._client.get_raw(path + template))
            assert found["template"]["spec"]["nodeSelector"] == self._labels
        kind = "Provisioned" if self._stock else "Failed"
        condition = {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "the zone has none" if not self._stock else "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await self._client.request(
            "PATCH",
            f"{REQUESTS}/namespaces/{meta['namespace']}/provisioningrequests/{meta['name']}/status",
            body=json.dumps({"status": {"conditions": [condition]}}).encode(),
            content_type="application/merge-patch+json",
        )
        for number in range(spec["podSets"][0]["count"] if self._stock else 0):
            await add_node(self._client, f"ca-{meta['name']}-{number}", self._labels, [])


class HookCloud:
    """A cloud behind an address; it may be short of nodes, lie about them, or lose an answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.machines: dict[int, str] = {}
        self.created: list[str] = []
        self.stock = True
        self.lies = False
        """Whether it takes requests and makes nothing."""

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Serve it on loopback; yield its address."""
        app = web.Application()
        app.router.add_post("/", self._take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        told = await request.json()
        if told["call"] == "list":
            return web.json_response({"slots": sorted(self.machines)})
        if told["call"] == "delete":
            for one in told["nodes"]:
                self.machines.pop(one["slot"], None)
            return web.json_response({})
        if not self.stock:
            return web.json_response({"reason": "OutOfStock", "message": "none in zone b"})
        for one in () if self.lies else told["nodes"]:
            if one["slot"] not in self.machines:
                self.machines[one["slot"]] = one["name"]
                self.created.append(one["name"])
                await add_node(self._client, one["name"], one["labels"], one["taints"])
        return web.json_response({})
