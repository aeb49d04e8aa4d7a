"""A TCP proxy that a test can make break all connections through it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable


class Proxy:
    """Passes bytes between clients and one port of this machine.

    Answers reach clients *late* seconds after the server gave them. It may be raised at any time,
    and lowered where `cut` follows.
    """

    def __init__(self, target: int) -> None:
        self.late = 0.0
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        """Listen while the block runs; its value is the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self.cut()

    def cut(self) -> None:
        """Break what is open, without a word to either side."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, back}
        try:
            await asyncio.gather(_pass(reader, back, lambda: 0.0), _pass(there, writer, self._late))
        finally:
            self._open -= {writer, back}
            for one in (writer, back):
                one.transport.abort()

    def _late(self) -> float:
        return self.late


async def _pass(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, late: Callable[[], float]
) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            if seconds := late():
                loop.call_later(seconds, sink.write, data)
            else:
                sink.write(data)
                await sink.drain()
    await asyncio.sleep(late())
    sink.close()
