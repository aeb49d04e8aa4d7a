"""A node that is killed: its pods go on, and what it missed is made up for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer
from tests.support.process_node import ProcessNode, gone, phase, pod, read_log, running, status
from tests.support.waiting import eventually, eventually_sync

from lockstep.nodes.process.spec import POD_RUNS


@pytest.fixture
def own_node(server: ApiServer, tmp_path: Path) -> Iterator[ProcessNode]:
    """A node that the test may kill."""
    running = ProcessNode(server, tmp_path / "node").start()
    yield running
    running.stop()
    if running.shims():
        running.start().stop()
    assert eventually_sync(lambda: not running.shims(), what="the end of all shims")


async def test_killed_node_adopts_what_runs_and_learns_what_ended(own_node: ProcessNode) -> None:
    flag = own_node.data.parent / "flag"
    wait = f"echo begun; while test ! -e {flag}; do sleep 0.02; done; echo over; exit 5"
    async with own_node.server.client() as client:
        await client.create(POD_RUNS, pod("goes-on", "echo begun; while :; do sleep 0.05; done"))
        await client.create(POD_RUNS, pod("ends", wait))
        await client.create(POD_RUNS, pod("removed", "while :; do sleep 0.05; done"))
        before = {}
        for name in ("goes-on", "ends", "removed"):
            found = await phase(client, name, "Running")
            before[name] = found.status.container_statuses[0].container_id
        own_node.kill()
        assert len(own_node.shims()) == 3
        flag.touch()
        await eventually(lambda: len(own_node.shims()) == 2, what="the end of the one")
        await client.delete(POD_RUNS, "removed", "default", grace_seconds=0)
        own_node.start()
        await phase(client, "ends", "Failed")
        state = (await status(client, "ends"))["containerStatuses"][0]
        assert state["state"]["terminated"]["exitCode"] == 5
        assert state["restartCount"] == 0
        assert read_log(own_node, "ends") == "begun\nover\n"
        await eventually(lambda: len(own_node.shims()) == 1, what="the reaping of the removed")
        kept = await phase(client, "goes-on", "Running")
        assert kept.status.container_statuses[0].container_id == before["goes-on"]
        assert kept.status.container_statuses[0].restart_count == 0
        await client.delete(POD_RUNS, "goes-on", "default", grace_seconds=1)
        await gone(client, "goes-on")
    assert list((own_node.data / "pods").iterdir()) != []


async def test_killed_shim_ends_its_container_and_is_told(own_node: ProcessNode) -> None:
    async with own_node.server.client() as client:
        await client.create(POD_RUNS, pod("orphan", "exec sleep 1000"))
        found = await phase(client, "orphan", "Running")
        main = int(found.status.container_statuses[0].container_id.rpartition("/")[2])
        os.kill(own_node.shims()[0], signal.SIGKILL)
        await phase(client, "orphan", "Failed")
        ended = (await status(client, "orphan"))["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
        await eventually(lambda: not running(main), what="the end of the container")


async def test_node_that_is_stopped_ends_its_pods_and_says_so(own_node: ProcessNode) -> None:
    async with own_node.server.client() as client:
        memory = {"name": "m", "emptyDir": {"medium": "Memory"}}
        script = "while :; do sleep 0.05; done"
        await client.create(POD_RUNS, pod("stopped", script, volumes=[memory]))
        await phase(client, "stopped", "Running")
        own_node.stop()
        assert str(own_node.data) not in Path("/proc/mounts").read_text()
        assert not own_node.shims()
        assert not own_node.groups()
        await phase(client, "stopped", "Failed")
        node = own_node.server.request("GET", "/api/v1/nodes/here").json
        ready = next(one for one in node["status"]["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "NodeStopped")


async def test_server_that_is_away_does_not_stop_the_pods(own_node: ProcessNode) -> None:
    async with own_node.server.client() as client:
        flag = own_node.data.parent / "flag"
        script = f"while test ! -e {flag}; do sleep 0.02; done; exit 3"
        await client.create(POD_RUNS, pod("alone", script))
        await phase(client, "alone", "Running")
    own_node.server.kill()
    flag.touch()
    await eventually(lambda: not own_node.shims(), what="the end of the pod")
    own_node.server.start()
    async with own_node.server.client() as client:
        await phase(client, "alone", "Failed")
        ended = (await status(client, "alone"))["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == 3
