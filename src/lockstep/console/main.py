"""The process ``lockstep console --serve``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path

from lockstep.console import links
from lockstep.console.sessions import Sessions
from lockstep.console.world import World
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig


class NotLoopback(ValueError):
    """The console was told to listen where tokens would travel in the clear."""


async def run(
    *,
    kubeconfig: Path | None,
    port: int,
    host: str = "127.0.0.1",
    state: Path | None = None,
    origins: Iterable[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Serve the console until cancelled; with *state*, one-time links in it are honoured.

    Raises:
        NotLoopback: when *host* is no loopback address.
        OSError: when *port* is taken.
    """
    from aiohttp import web

    from lockstep.console.app import Console

    if not ip_address(host).is_loopback:
        raise NotLoopback(
            f"--host {host}: tokens would travel in the clear; use a loopback address, and put "
            "what speaks TLS in front"
        )
    config = ClusterConfig.load(kubeconfig)
    async with Client(config) as client:
        world, sessions = World(client), Sessions(config, state)
        listening = socket.create_server((host, port))
        port = listening.getsockname()[1]
        here = {f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        console = Console(world, sessions, frozenset({*here, *origins}), f"lockstep-{port}")
        runner = web.AppRunner(console.app(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            address = f"http://{host}:{port}"
            if state is not None:
                links.publish(state, address)
            ready(f"ready {address}")
            await asyncio.Event().wait()
        finally:
            await sessions.close()
            await world.close()
            await runner.cleanup()
