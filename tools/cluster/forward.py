"""Leads from listening sockets of the host's loopback into a machine's network.

A socket stays in the network where it was made: the machine accepts from the host's loopback,
and the host has no link and no route to the machine.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Final

_CHUNK: Final = 1 << 16
_LEADING: Final[set[asyncio.Task[None] | None]] = set()
"""The connections that are open: the event loop alone would let them be collected."""


def forward(sockets: dict[int, int]) -> None:
    """Lead every connection to these file descriptors to the loopback port beside it, for good."""
    asyncio.run(_forward(sockets))


async def _forward(sockets: dict[int, int]) -> None:
    for descriptor, port in sockets.items():
        await asyncio.start_server(partial(_lead, port), sock=socket.socket(fileno=descriptor))
    await asyncio.Event().wait()


async def _lead(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    task = asyncio.current_task()
    _LEADING.add(task)
    try:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, back), _copy(there, writer))
        back.close()
    except OSError:
        pass  # Nothing listens there: the other side sees its connection end.
    finally:
        writer.close()
        _LEADING.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.write_eof()
