"""A node that is killed again and again while pods start and end."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from tests.support.apiserver import ApiServer
from tests.support.process_node import ProcessNode, pod
from tests.support.waiting import eventually

from lockstep.kube.client import Client
from lockstep.nodes.process.spec import POD_RUNS

PODS = 24


async def test_every_pod_runs_exactly_once_over_any_node_kills(
    server: ApiServer, tmp_path: Path
) -> None:
    rng = random.Random(7)  # noqa: S311  a draw that can be repeated, not a secret
    node = ProcessNode(server, tmp_path / "node").start()
    runs = tmp_path / "runs"
    async with server.client() as client:
        for number in range(PODS):
            length = rng.choice([0, 0.05, 0.5])
            script = f"echo {number} >> {runs}; sleep {length}; exit {number % 3}"
            await client.create(POD_RUNS, pod(f"p-{number}", script))
            if number % 6 == 5:
                await asyncio.sleep(rng.random() * 0.1)
                node.kill()
                node.start()

        async def over() -> bool:
            return all(phase in ("Succeeded", "Failed") for phase in await _phases(client))

        await eventually(over, 90, "the end of all pods")
        assert sorted(map(int, runs.read_text().split())) == list(range(PODS))
        found = await client.list(POD_RUNS, "default")
        codes = {
            one.metadata.name: one.status.container_statuses[0].state.terminated
            for one in found.items
        }
        assert {name: end.exit_code for name, end in codes.items() if end} == {
            f"p-{number}": number % 3 for number in range(PODS)
        }
    node.stop()
    assert not node.shims()


async def _phases(client: Client) -> list[str]:
    return [one.status.phase for one in (await client.list(POD_RUNS, "default")).items]


async def test_stopping_while_pods_start_leaves_nothing_running(
    server: ApiServer, tmp_path: Path
) -> None:
    node = ProcessNode(server, tmp_path / "node").start()
    async with server.client() as client:
        for number in range(8):
            await client.create(POD_RUNS, pod(f"p-{number}", "exec sleep 1000"))
        await eventually(node.shims, what="the first container")
        node.stop()
        assert not node.shims()


async def test_end_of_every_short_pod_is_told(server: ApiServer, tmp_path: Path) -> None:
    node = ProcessNode(server, tmp_path / "node").start()
    async with server.client() as client:
        for number in range(60):
            await client.create(POD_RUNS, pod(f"p-{number}", "exit 0"))

        async def over() -> bool:
            return set(await _phases(client)) == {"Succeeded"}

        await eventually(over, 60, "the end of all pods")
    node.stop()
