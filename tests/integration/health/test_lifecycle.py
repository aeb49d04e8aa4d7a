"""Nodes that fall silent end as they do under kube-controller-manager, and give their pods back."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_programs import controller_manager
from tests.support.waiting import eventually, stretched

from lockstep.api.core import LEASES, NAMESPACES, NODES, PODS
from lockstep.health.lifecycle import add_lifecycle
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists
from lockstep.runtime.manager import Manager

pytestmark = pytest.mark.xdist_group("lifecycle")
PATIENCE = 90.0


@functools.cache
def grace() -> int:
    """Return the seconds of silence after which a node is lost, the same for both controllers.

    While a machine so busy that the living node is silent for longer loses all of them, neither
    controller evicts anything.
    """
    return round(stretched(3.0))


ALIVE = "alive"
Json = dict[str, Any]

FOR_EVER = [{"operator": "Exists"}]
TWO_SECONDS = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]
NODES_SEEN: dict[str, Json] = {
    "silent": {"conditions": [{"type": "Ready", "status": "True"}]},
    "unready": {"conditions": [{"type": "Ready", "status": "False", "reason": "Broken"}]},
    "full": {
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "Broken"},
            {"type": "DiskPressure", "status": "True", "reason": "Full"},
        ]
    },
}
PODS_SEEN = {"stays": FOR_EVER, "leaves": TWO_SECONDS}


@contextlib.asynccontextmanager
async def ours(server: ApiServer) -> AsyncIterator[Client]:
    async with server.client() as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_lifecycle(manager, grace=grace())
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            yield client
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def theirs(server: ApiServer) -> AsyncIterator[Client]:
    controllers = ("node-lifecycle-controller", "taint-eviction-controller")
    running = controller_manager(
        server,
        (*controllers, "serviceaccount-controller"),
        node_monitor_grace_period=f"{grace()}s",
        node_startup_grace_period=f"{grace()}s",
        node_monitor_period="1s",
        node_eviction_rate=100,
        secondary_node_eviction_rate=100,
        # Else it evicts nothing from a small cluster once it finds most of its nodes lost.
        large_cluster_size_threshold=1,
    ).start()
    try:
        async with server.client() as client:
            yield client
    finally:
        running.kill()


async def play(client: Client) -> Json:
    """Let every node go wrong in its way; return how nodes and pods end."""
    for name, status in NODES_SEEN.items():
        spec = {"unschedulable": True} if name == "full" else {}
        await client.create(NODES, {"metadata": {"name": name}, "spec": spec})
        await client.patch(
            NODES, name, {"status": status}, how=Patch.STRATEGIC, subresource="status"
        )
        for pod, tolerations in PODS_SEEN.items():
            container = {"name": "main", "image": "none"}
            body: Json = {"nodeName": name, "tolerations": tolerations, "containers": [container]}
            body["terminationGracePeriodSeconds"] = 600
            full = f"{name}-{pod}"
            await client.create(PODS, {"metadata": {"name": full}, "spec": body}, "default")
            ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
            await client.patch(
                PODS, full, {"status": ready}, "default", how=Patch.STRATEGIC, subresource="status"
            )

    async def over() -> bool:
        if beating.done():
            beating.result()  # the node that lives lives no more: nothing would be evicted
        pods = (await client.list(PODS, "default")).items
        gone = [p for p in pods if p.metadata.deletion_timestamp is not None]
        left = {p.metadata.name for p in pods if _is(p.status.conditions, "Ready", "True")}
        nodes = [n for n in (await client.list(NODES)).items if n.metadata.name != ALIVE]
        lost = [n for n in nodes if _is(n.status.conditions, "Ready", "Unknown")]
        return len(gone) == len(NODES_SEEN) and not left and len(lost) == len(NODES_SEEN)

    beating = asyncio.create_task(_beat(client))
    await eventually(over, PATIENCE, "every node is lost, and its pod gone")

    async def tainted() -> bool:
        nodes = [n for n in (await client.list(NODES)).items if n.metadata.name != ALIVE]
        return all(any("unreachable" in t.key for t in n.spec.taints) for n in nodes)

    await eventually(tainted, PATIENCE, "every node is tainted")
    beating.cancel()
    nodes = [n for n in (await client.list(NODES)).items if n.metadata.name != ALIVE]
    pods = (await client.list(PODS, "default")).items
    return {
        "nodes": {
            n.metadata.name: (
                sorted((c.type, c.status, c.reason, c.message) for c in n.status.conditions),
                sorted((t.key, t.effect, t.value) for t in n.spec.taints),
                all(t.time_added for t in n.spec.taints if t.effect == "NoExecute"),
            )
            for n in nodes
        },
        "pods": {
            p.metadata.name: (
                p.metadata.deletion_timestamp is not None,
                sorted(
                    (c.type, c.status, c.reason, c.message)
                    for c in p.status.conditions
                    if c.type in ("Ready", "DisruptionTarget")
                ),
            )
            for p in pods
        },
    }


async def _beat(client: Client) -> None:
    """Keep one node alive: where none is, nothing is evicted.

    As a kubelet does, it says Ready again when a machine so busy that its lease came late lost it.
    """
    await client.create(NODES, {"metadata": {"name": ALIVE}, "spec": {}})
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
    spec = {"holderIdentity": ALIVE, "leaseDurationSeconds": 1}
    await client.create(LEASES, {"metadata": {"name": ALIVE}, "spec": spec}, "kube-node-lease")
    while True:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        await client.patch(LEASES, ALIVE, {"spec": {"renewTime": now}}, "kube-node-lease")
        await client.patch(NODES, ALIVE, ready, how=Patch.STRATEGIC, subresource="status")
        await asyncio.sleep(0.5)


def _is(conditions: Any, kind: str, status: str) -> bool:
    return any((c.type, c.status) == (kind, status) for c in conditions)


async def test_lost_nodes_end_as_under_kube_controller_manager(
    server: ApiServer, real_server: KubeApiServer
) -> None:
    real_server.empty()
    async with ours(server) as client:
        mine = await play(client)
    async with theirs(real_server) as client:
        reference = await play(client)
    real_server.empty()
    assert mine == reference


async def test_a_node_that_comes_back_loses_its_taints(server: ApiServer) -> None:
    async with ours(server) as client:
        await client.create(NODES, {"metadata": {"name": "n"}, "spec": {}})

        async def tell(status: str) -> None:
            body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
            await client.patch(NODES, "n", body, how=Patch.STRATEGIC, subresource="status")

        def keys(wanted: set[str]) -> Callable[[], Any]:
            async def look() -> bool:
                node = await client.get(NODES, "n")
                return {t.key.rpartition("/")[2] for t in node.spec.taints} == wanted

            return look

        await tell("False")
        await eventually(keys({"not-ready"}), PATIENCE, "the taint")
        await tell("True")
        await eventually(keys(set()), PATIENCE, "no taint")
