"""``python -m lockstep.notebooks.inside.main``: the keeper, as the process of a kernel's pod."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import WSMsgType, web

from lockstep.notebooks.inside.keeper import Keeper
from lockstep.notebooks.inside.kernel import Kernel
from lockstep.notebooks.inside.messages import MOST, PING_SECONDS
from lockstep.notebooks.inside.others import Others
from lockstep.notebooks.inside.packages import lock_hash
from lockstep.notebooks.inside.shelf import Shelf

log = logging.getLogger(__name__)

OWN: Final = "LOCKSTEP_KERNEL_"
"""What the names of the keeper's own variables begin with; the kernel does not get them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a kernel's pod tells its keeper."""

    token: str
    key: bytes
    shelf: str
    since: int
    host: str
    port: int
    python: str

    @classmethod
    def read(cls, environ: dict[str, str]) -> Settings:
        """Take the keeper's variables out of *environ*.

        Raises:
            KeyError: when one is missing.
        """
        own = {name: environ.pop(name) for name in list(environ) if name.startswith(OWN)}
        return cls(
            token=own[f"{OWN}TOKEN"],
            key=own[f"{OWN}KEY"].encode(),
            shelf=own.get(f"{OWN}SHELF", ""),
            since=int(own.get(f"{OWN}SINCE", "0")),
            host=own[f"{OWN}HOST"],
            port=int(own[f"{OWN}PORT"]),
            python=_python(own.get(f"{OWN}PACKAGES", ""), own.get(f"{OWN}LOCK", "")),
        )


def _python(root: str, lock: str) -> str:
    """Return the kernel's Python: that of the environment's packages, if it has any."""
    return str(Path(root) / lock_hash(lock) / "bin/python") if root else sys.executable


class Connection:
    """A WebSocket with its own queue, so that a slow one delays no other."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self._queue: asyncio.Queue[str | bytes] = asyncio.Queue()

    def put(self, frame: str | bytes) -> None:
        """Send a frame, some time soon."""
        self._queue.put_nowait(frame)

    async def write(self) -> None:
        """Send what is put until the connection ends."""
        while True:
            frame = await self._queue.get()
            if isinstance(frame, str):
                await self.socket.send_str(frame)
            else:
                await self.socket.send_bytes(frame)


def app(keeper: Keeper, token: str) -> web.Application:
    """Return the keeper's interface; every request must bear *token*."""

    @web.middleware
    async def admit(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise web.HTTPUnauthorized(text="the kernel's token is missing or wrong\n")
        return await handler(request)

    async def state(_: web.Request) -> web.Response:
        return web.json_response(keeper.state())

    async def park(request: web.Request) -> web.Response:
        return web.json_response(await keeper.park(drop=request.query.get("drop") == "true"))

    async def interrupt(_: web.Request) -> web.Response:
        if keeper.kernel is not None:
            await keeper.kernel.interrupt()
        return web.Response(status=204)

    async def restart(_: web.Request) -> web.Response:
        await keeper.restart()
        return web.json_response(keeper.state())

    async def channels(request: web.Request) -> web.StreamResponse:
        return await _channels(request, keeper)

    made = web.Application(middlewares=[admit])
    made.add_routes(
        [
            web.get("/state", state),
            web.post("/park", park),
            web.post("/interrupt", interrupt),
            web.post("/restart", restart),
            web.get("/channels", channels),
        ]
    )
    return made


async def _channels(request: web.Request, keeper: Keeper) -> web.StreamResponse:
    socket = web.WebSocketResponse(heartbeat=PING_SECONDS, max_msg_size=MOST)
    await socket.prepare(request)
    client = Connection(socket)
    keeper.connect(client)
    writing = asyncio.create_task(client.write())
    try:
        async for message in socket:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                try:
                    keeper.take(client, message.data)
                except ValueError as error:
                    log.warning("a message was refused: %s", error)
    finally:
        keeper.disconnect(client)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await writing
    return socket


async def run(settings: Settings, environ: dict[str, str]) -> None:
    """Keep a kernel until SIGTERM, then keep its state."""
    shelf = Shelf(Path(settings.shelf), settings.key) if settings.shelf else None
    others = Others(f"{OWN}TOKEN={settings.token}")
    keeper = Keeper(shelf, settings.since, others=others.at_work)
    kernel = Kernel(settings.python, keeper.hear, environ, _cloudpickle())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    keeper.kernel = kernel
    runner = web.AppRunner(app(keeper, settings.token), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, settings.host, settings.port).start()
    watching = None
    try:
        await keeper.start(kernel)
        if keeper.failure:
            log.error("%s", keeper.failure)
        watching = asyncio.create_task(keeper.watch())
        await stop.wait()
        await keeper.last_park()
    finally:
        if watching is not None:
            watching.cancel()
        await kernel.stop()
        await runner.cleanup()


def _cloudpickle() -> str:
    import cloudpickle

    return str(Path(cloudpickle.__file__).parents[1])


def main() -> None:
    """Run the keeper with the settings of its environment."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname).1s %(message)s")
    environ: dict[str, Any] = dict(os.environ)
    asyncio.run(run(Settings.read(environ), environ))


if __name__ == "__main__":
    main()
