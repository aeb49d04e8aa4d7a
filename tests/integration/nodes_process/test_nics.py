"""NICs of a process node, on a recorded tree, given to its pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.device_tree import DeviceTree
from tests.support.process_node import ProcessNode, phase, pod, read_log
from tests.support.recorded_sys import seeing

from lockstep.nodes.process.spec import POD_RUNS

V4 = "0000:0000:0000:0000:0000:ffff:0a3c:0001"


@pytest.fixture(scope="module")
def wired(
    shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNode]:
    """A node with two RoCE devices."""
    tree = DeviceTree(tmp_path_factory.mktemp("tree"))
    for number in (0, 1):
        address = f"0000:{number + 1}7:00.0"
        tree.rdma(f"mlx5_{number}", address, "pci0000:15", verbs=number, gids={3 + number: V4})
    data = tmp_path_factory.mktemp("wired")
    running = ProcessNode(shared_server, data, name="wired", before=seeing(tree.root)).start()
    yield running
    running.stop()


async def test_pods_get_nics_of_their_own(wired: ProcessNode) -> None:
    limits = {"resources": {"limits": {"lockstep.dev/nics": "1"}}}
    script = "env | grep -e HCA -e GID -e PCIDEVICE_LOCKSTEP_DEV_NICS="
    chosen = {"annotations": {"lockstep.dev/nics": "1"}}
    bodies = (
        pod("chosen", script, nodeName="wired", container=limits, metadata=chosen),
        pod("lowest", script, nodeName="wired", container=limits),
        pod("none", f"{script} && exit 1; exit 0", nodeName="wired"),
    )
    async with wired.server.client() as client:
        for body in bodies:
            await client.create(POD_RUNS, body)
        for body in bodies:
            await phase(client, body["metadata"]["name"], "Succeeded")
    told = read_log(wired, "chosen")
    for words in (
        "LOCKSTEP_HCAS=mlx5_1\n",
        "NCCL_IB_HCA==mlx5_1\n",
        "LOCKSTEP_GID_INDICES=mlx5_1:4\n",
        "NCCL_IB_GID_INDEX=4\n",
        "PCIDEVICE_LOCKSTEP_DEV_NICS=0000:27:00.0\n",
    ):
        assert words in told
    assert "LOCKSTEP_HCAS=mlx5_0\n" in read_log(wired, "lowest")
