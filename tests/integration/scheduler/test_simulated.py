"""Gangs from waiting to finished on simulated nodes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable

from tests.support.scheduler import PartProcess, add_gang, add_nodes, nodes_of, pod_body
from tests.support.waiting import eventually

from lockstep.api.core import CRDS, PODS
from lockstep.api.gang import GANGS
from lockstep.compat.hypernodes import HYPERNODES
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound


async def test_gangs_run_finish_and_make_room_for_the_next(any_server):
    configs = any_server.data / "kubeconfigs"
    scheduler = PartProcess(configs / "scheduler.kubeconfig").start()
    nodes = PartProcess(
        configs / "simulate-nodes.kubeconfig",
        options=("8x8,nodes-per-leaf=4,leaves-per-spine=2",),
        part="simulate-nodes",
    ).start()
    try:
        async with any_server.client() as client:

            async def phase(name: str) -> str:
                return (await client.get(GANGS, name, "default")).status.phase

            async def reaches(name: str, wanted: str) -> bool:
                return await phase(name) == wanted

            wish = {"required": "leaf"}
            for name in ("first", "second", "third"):
                await add_gang(client, name, 4, topology=wish)
            for name in ("first", "second"):
                await eventually(lambda name=name: reaches(name, "Running"))
            first, second = await nodes_of(client, "first"), await nodes_of(client, "second")
            assert len({*first.values(), *second.values()}) == 8
            assert await phase("third") == "Pending"
            for pod in first:
                await client.delete(PODS, pod, "default")
            await eventually(lambda: reaches("third", "Running"))
            assert set((await nodes_of(client, "third")).values()) == set(first.values())
            assert (await client.get(GANGS, "third", "default")).status.domain["leaf"]
    finally:
        nodes.kill()
        scheduler.kill()


HYPERNODE_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "hypernodes.topology.volcano.sh"},
    "spec": {
        "group": "topology.volcano.sh",
        "scope": "Cluster",
        "names": {"plural": "hypernodes", "singular": "hypernode", "kind": "HyperNode"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}

SWITCHES = {"left": "^a", "right": "^b"}
"""HyperNodes, and which nodes they hold."""


@contextlib.asynccontextmanager
async def with_hypernodes(client: Client) -> AsyncIterator[None]:
    """Define the kind, which stays; its objects go: their tiers would be those of other tests."""
    with contextlib.suppress(AlreadyExists):
        await client.create(CRDS, HYPERNODE_CRD)

    async def served() -> bool:
        try:
            await client.list(HYPERNODES)
        except NotFound:
            return False
        return True

    await eventually(served)
    try:
        yield
    finally:
        for name in SWITCHES:
            with contextlib.suppress(NotFound):
                await client.delete(HYPERNODES, name)


async def test_gangs_keep_to_the_tiers_of_volcanos_hypernodes(any_server):
    configs = any_server.data / "kubeconfigs"
    async with any_server.client() as client, with_hypernodes(client):
        scheduler = PartProcess(configs / "scheduler.kubeconfig").start()
        try:
            await add_nodes(client, ["a1", "a2", "b1", "b2", "b3"])
            await add_gang(client, "early", 3, topology={"required": "switch"})

            async def reason(name: str) -> str:
                return (await client.get(GANGS, name, "default")).status.reason

            await eventually(lambda: _is(reason("early"), "UnknownTier"))
            for name, pattern in SWITCHES.items():
                member = {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}
                spec = {"tier": 1, "tierName": "switch", "members": [member]}
                await client.create(HYPERNODES, {"metadata": {"name": name}, "spec": spec})
            await eventually(lambda: _is(reason("early"), ""))
            placed = await eventually(lambda: _all_placed(client, "early", 3))
            assert set(placed.values()) == {"b1", "b2", "b3"}
        finally:
            scheduler.kill()


async def _is(asked: Awaitable[str], wanted: str) -> bool:
    return await asked == wanted


async def _all_placed(client: Client, gang: str, members: int) -> dict[str, str] | None:
    found = await nodes_of(client, gang)
    return found if len(found) == members and all(found.values()) else None


async def test_a_pod_is_told_the_aligned_devices_that_it_got(any_server):
    configs = any_server.data / "kubeconfigs"
    scheduler = PartProcess(configs / "scheduler.kubeconfig").start()
    nodes = PartProcess(
        configs / "simulate-nodes.kubeconfig", options=("1x8",), part="simulate-nodes"
    ).start()
    asked = {"cpu": "8", "nvidia.com/gpu": "2", "lockstep.dev/nics": "2"}
    try:
        async with any_server.client() as client:

            async def annotations(name: str) -> dict[str, str]:
                pod = await client.get(PODS, name, "default")
                return pod.metadata.annotations if pod.spec.node_name else {}

            for name in ("a", "b"):
                resources = {"requests": asked, "limits": asked}
                meta = {
                    "name": name,
                    "namespace": "default",
                    "annotations": {"lockstep.dev/align-required": "pcie,numa"},
                }
                container = {"name": "main", "image": "none", "resources": resources}
                spec = pod_body(name)["spec"] | {"containers": [container]}
                await client.create(PODS, {"metadata": meta, "spec": spec})
                await eventually(lambda name=name: annotations(name))
            for name, indices, names in (
                ("a", "0,1", "mlx5_0,mlx5_1"),
                ("b", "2,3", "mlx5_2,mlx5_3"),
            ):
                told = await annotations(name)
                assert told["lockstep.dev/gpus"] == told["lockstep.dev/nics"] == indices
                assert told["lockstep.dev/hcas"] == names
                assert told["lockstep.dev/numa"] == "0"
    finally:
        nodes.kill()
        scheduler.kill()
