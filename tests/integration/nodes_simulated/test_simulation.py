"""Simulated nodes against each API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

from lockstep.api import names
from lockstep.api.core import LEASES, NODES, PODS, Node, Pod
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.simulated import main
from lockstep.nodes.simulated.simulation import Simulation
from lockstep.nodes.simulated.spec import SpecError, parse


@contextlib.asynccontextmanager
async def simulated(client: Client, spec: str, **options: Any) -> AsyncIterator[None]:
    """Runs a simulation while the block runs."""
    told = asyncio.Event()
    simulation = Simulation(client, parse(spec), **options)
    task = asyncio.create_task(simulation.run(told.set))
    try:
        await eventually(lambda: told.is_set() or task.done(), what="ready")
        if task.done():
            await task
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def bound(client: Client, name: str, node: str, **annotations: str) -> Pod:
    body = {
        "metadata": {
            "name": name,
            "annotations": {
                f"lockstep.dev/{k.replace('_', '-')}": v for k, v in annotations.items()
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{"name": "first", "image": "x"}],
            "containers": [{"name": "main", "image": "x"}, {"name": "helper", "image": "x"}],
        },
    }
    made = await client.create(PODS, body)
    await client.bind("default", name, node, uid=made.metadata.uid)
    return made


async def phase(client: Client, name: str) -> str:
    return (await client.get(PODS, name)).status.phase


async def reaches(client: Client, name: str, wanted: str) -> Pod:
    async def there() -> bool:
        return await phase(client, name) == wanted

    await eventually(there, what=f"{name} {wanted}")
    return await client.get(PODS, name)


def ready(node: Node) -> str:
    return next(c.status for c in node.status.conditions if c.type == "Ready")


async def test_nodes_are_registered_with_places_devices_and_leases(
    any_shared_server: ApiServer,
) -> None:
    spec = "9x8,nodes-per-leaf=4,leaves-per-spine=2,name-prefix=reg"
    async with any_shared_server.client() as client, simulated(client, spec):
        selector = f"{names.NODE_KIND_LABEL}=simulated"
        listing = await client.list(NODES, label_selector=selector)
        places = {
            n.metadata.name: (n.metadata.labels["spine"], n.metadata.labels["leaf"])
            for n in listing.items
        }
        assert len(places) == 9
        assert places["reg-0-1-3"] == ("spine-0", "leaf-0-1")
        assert places["reg-1-0-0"] == ("spine-1", "leaf-1-0")
        assert {ready(node) for node in listing.items} == {"True"}
        assert {node.status.allocatable[names.GPU] for node in listing.items} == {"8"}
        lease = await client.get(LEASES, "reg-0-0-0", "kube-node-lease")
        assert lease.spec.holder_identity == "reg-0-0-0"


async def test_registering_again_corrects_what_has_changed(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        async with simulated(client, "2x8,name-prefix=again"):
            first = await client.get(NODES, "again-0-0-0")
        async with simulated(client, "2x8,name-prefix=again"):
            same = await client.get(NODES, "again-0-0-0")
            assert same.metadata.resource_version == first.metadata.resource_version
        async with simulated(client, "2x4,name-prefix=again"):
            fewer = await client.get(NODES, "again-0-0-0")
            assert fewer.metadata.uid == first.metadata.uid
            assert fewer.status.allocatable[names.GPU] == "4"
            assert fewer.metadata.labels["nvidia.com/gpu.count"] == "4"


async def test_pods_start_run_and_end(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client, simulated(client, "2x8,name-prefix=runs"):
        await bound(client, "lasting", "runs-0-0-0")
        await bound(client, "short", "runs-0-0-1", runtime="0.1")
        await bound(client, "failing", "runs-0-0-1", runtime="0.1", fail_rate="1")
        await bound(client, "wrong", "runs-0-0-1", runtime="soon")
        lasting = await reaches(client, "lasting", "Running")
        assert lasting.status.pod_ip != ""
        assert [c.ready for c in lasting.status.container_statuses] == [True, True]
        await reaches(client, "short", "Succeeded")
        await reaches(client, "failing", "Failed")
        wrong = await reaches(client, "wrong", "Failed")
        assert names.RUNTIME_ANNOTATION in wrong.status.message
        assert await phase(client, "lasting") == "Running"


async def test_a_pod_fails_on_command(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client, simulated(client, "1x8,name-prefix=cmd"):
        await bound(client, "victim", "cmd-0-0-0")
        await reaches(client, "victim", "Running")
        patch = {"metadata": {"annotations": {names.FAIL_ANNOTATION: "77"}}}
        await client.patch(PODS, "victim", patch)
        failed = await reaches(client, "victim", "Failed")
        end = failed.status.container_statuses[0].state.terminated
        assert end is not None
        assert end.exit_code == 77


async def test_a_deleted_pod_goes(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client, simulated(client, "1x8,name-prefix=del"):
        await bound(client, "deleted", "del-0-0-0")
        await reaches(client, "deleted", "Running")
        await client.delete(PODS, "deleted")

        async def gone() -> bool:
            try:
                await client.get(PODS, "deleted")
            except NotFound:
                return True
            return False

        await eventually(gone)


async def test_a_node_dies_and_comes_back_on_command(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client, simulated(client, "2x8,name-prefix=dead"):

        async def command(value: str | None) -> None:
            patch = {"metadata": {"annotations": {names.FAIL_NODE_ANNOTATION: value}}}
            await client.patch(NODES, "dead-0-0-0", patch)

        async def is_ready(status: str) -> bool:
            return ready(await client.get(NODES, "dead-0-0-0")) == status

        await command("power supply")
        await eventually(lambda: is_ready("Unknown"))
        assert ready(await client.get(NODES, "dead-0-0-1")) == "True"
        await bound(client, "waits", "dead-0-0-0")
        await bound(client, "runs", "dead-0-0-1")
        await reaches(client, "runs", "Running")
        assert await phase(client, "waits") == "Pending"
        await command(None)
        await eventually(lambda: is_ready("True"))
        await reaches(client, "waits", "Running")


async def test_a_restarted_simulation_takes_its_pods_up_again(any_shared_server: ApiServer) -> None:
    async with any_shared_server.client() as client:
        async with simulated(client, "1x8,name-prefix=up"):
            await bound(client, "before", "up-0-0-0", runtime="1.5")
            await bound(client, "stays", "up-0-0-0")
            await reaches(client, "before", "Running")
            stays = await reaches(client, "stays", "Running")
        await bound(client, "meanwhile", "up-0-0-0")
        async with simulated(client, "1x8,name-prefix=up"):
            meanwhile = await reaches(client, "meanwhile", "Running")
            await reaches(client, "before", "Succeeded")
            assert meanwhile.status.pod_ip != stays.status.pod_ip
            again = await client.get(PODS, "stays")
            assert again.metadata.resource_version == stays.metadata.resource_version


async def test_the_server_may_die_in_the_middle(any_server: ApiServer) -> None:
    async with any_server.client() as client, simulated(client, "8x8"):
        for n in range(8):
            await bound(client, f"p{n}", f"sim-0-0-{n}", start_delay="0.5")
        await asyncio.to_thread(any_server.kill)
        await asyncio.to_thread(any_server.start)
        for n in range(8):
            await reaches(client, f"p{n}", "Running")


async def test_the_process_says_when_it_is_ready(any_server: ApiServer) -> None:
    told: list[str] = []
    task = asyncio.create_task(
        main.run(kubeconfig=any_server.kubeconfig, spec="4x8", ready=told.append)
    )
    await eventually(lambda: told or task.done())
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert told == ["4 simulated nodes with 32 GPUs"]
    with pytest.raises(SpecError):
        await main.run(kubeconfig=any_server.kubeconfig, spec="4", ready=told.append)
