"""Pods and keepers of kernels, played: what a controller of kernels sees of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lockstep.api.core import PODS, Pod
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.notebooks.core.kernel_pod import KERNEL_LABEL, PORT

Json = dict[str, Any]


def own_address(number: int = 1) -> str:
    """Return a loopback address that no other process of the tests uses."""
    pid = os.getpid()
    return f"127.{100 + number}.{pid >> 8 & 255}.{pid & 253 | 1}"


@dataclass
class PlayedKernels:
    """Runs the pods of kernels on paper, and answers as the keeper of the newest one."""

    client: Client
    address: str
    idle_for: float = 0.0
    obstacles: list[Json] = field(default_factory=list)
    writes: int = 0
    """How often a state was written."""
    pods: list[str] = field(default_factory=list)
    """Uids of the pods that ran, in order."""
    parked: dict[str, int] = field(default_factory=dict)

    async def state(self, _: web.Request) -> web.Response:
        uid = self.pods[-1] if self.pods else ""
        number = self.parked.get(uid)
        told: Json = {
            "execution_state": "idle",
            "idle_for": self.idle_for,
            "ready": True,
            "info": {"implementation": "played"},
            "parked": None if number is None else {"generation": number, "bytes": 7},
        }
        return web.json_response(told)

    async def park(self, request: web.Request) -> web.Response:
        uid = self.pods[-1]
        if self.obstacles and request.query.get("drop") != "true":
            return web.json_response({"obstacles": self.obstacles})
        if uid not in self.parked:
            self.writes += 1
            self.parked[uid] = self.writes
        return web.json_response({"parked": {"generation": self.parked[uid], "bytes": 7}})

    async def play(self) -> None:
        """Let each new pod of a kernel run, until cancelled."""
        while True:
            with contextlib.suppress(ApiError):
                listing = await self.client.list(PODS, "default", label_selector=KERNEL_LABEL)
                for pod in listing.items:
                    await self._run(pod)
            await asyncio.sleep(0.02)

    async def _run(self, pod: Pod) -> None:
        about = pod.metadata
        if about.deletion_timestamp is not None or pod.status.phase == "Running":
            return
        if about.uid not in self.pods:
            self.idle_for = 0.0
            self.pods.append(about.uid)
        status = {"status": {"phase": "Running", "podIP": self.address}}
        with contextlib.suppress(NotFound):
            await self.client.patch(PODS, about.name, status, "default", subresource="status")


@asynccontextmanager
async def played(client: Client, number: int = 1) -> AsyncIterator[PlayedKernels]:
    """Play the pods of kernels and their keepers."""
    kernels = PlayedKernels(client, own_address(number))
    app = web.Application()
    app.add_routes([web.get("/state", kernels.state), web.post("/park", kernels.park)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, kernels.address, PORT).start()
    playing = asyncio.create_task(kernels.play())
    try:
        yield kernels
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        await runner.cleanup()
