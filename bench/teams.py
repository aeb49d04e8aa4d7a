"""1,000 teams of 10 members on the embedded API server: from nothing to ready, then at rest."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.apiserver import ApiServer

from bench.figure import Figure
from lockstep.api.team import TEAMS
from lockstep.kube.client import Client
from lockstep.kube.crds import ensure_crds
from lockstep.runtime.manager import Manager
from lockstep.tenants.main import add_teams

SLOW = True
COUNT, MEMBERS, WRITERS, QUIET = 1000, 10, 16, 5.0


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        server = ApiServer(Path(directory) / "cluster").start()
        try:
            seconds, writes = asyncio.run(_play(server))
        finally:
            server.kill()
    name = f"{COUNT:,} teams of {MEMBERS} members"
    return [
        Figure(f"{name}, from nothing to ready", seconds, "s", better="lower", limit=60.0),
        Figure(f"{name}, writes while settled", writes, "writes", better="lower", limit=0.0),
    ]


def _team(index: int) -> dict[str, Any]:
    members = [{"name": f"user-{index}-{n}"} for n in range(MEMBERS)]
    spec = {"members": members, "queue": {"weight": 1}, "quota": {"pods": 100}}
    return {"metadata": {"name": f"team-{index}"}, "spec": spec}


async def _play(server: ApiServer) -> tuple[float, int]:
    async with server.client() as client, server.client() as own:
        await ensure_crds(client)
        manager = Manager(own, name="controllers", leader_elect=False)
        add_teams(manager)
        task = asyncio.create_task(manager.run(lambda _: None))
        try:
            start = time.perf_counter()
            gate = asyncio.Semaphore(WRITERS)
            await asyncio.gather(*(_create(client, gate, n) for n in range(COUNT)))
            await _ready(client)
            seconds = time.perf_counter() - start
            # The server counts what quotas are used by for a moment after they are made.
            await asyncio.sleep(QUIET)
            before = await _revision(client)
            await asyncio.sleep(QUIET)
            return seconds, await _revision(client) - before
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _create(client: Client, gate: asyncio.Semaphore, index: int) -> None:
    async with gate:
        await client.create(TEAMS, _team(index))


async def _ready(client: Client) -> None:
    while True:
        teams = (await client.list(TEAMS)).items
        ready = [t for t in teams if any(c.status == "True" for c in t.status.conditions)]
        if len(ready) == COUNT:
            return
        await asyncio.sleep(0.2)


async def _revision(client: Client) -> int:
    """Return the store's revision, which every write raises by one."""
    return int((await client.list(TEAMS, limit=1)).resource_version)
