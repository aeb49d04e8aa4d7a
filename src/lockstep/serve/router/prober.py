"""Asking new replicas whether they answer, while requests wait for them.

The node asks as well, and the server tells; but each of those steps takes its time, and the first
request after zero waits through all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from lockstep.serve.router.lane import Lane
from lockstep.serve.router.table import Table

EVERY: Final = 0.05
PATIENCE: Final = 2.0


class Prober:
    """Asks the replicas of lanes on which requests wait."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lanes: dict[str, asyncio.Task[None]] = {}

    def look(self, lane: Lane) -> None:
        """Ask the replicas of *lane* for as long as requests wait on it."""
        if lane.waiting and lane.key not in self._lanes:
            task = asyncio.ensure_future(self._ask(lane))
            self._lanes[lane.key] = task
            task.add_done_callback(lambda _: self._lanes.pop(lane.key, None))

    async def _ask(self, lane: Lane) -> None:
        while lane.waiting:
            lane.expire()
            asked = list(self._table.unproven(lane))
            answers = await asyncio.gather(
                *(_answers(address, port, path) for _, address, port, path in asked)
            )
            for (uid, *_), good in zip(asked, answers, strict=True):
                if good:
                    self._table.proven(lane, uid)
            await asyncio.sleep(EVERY)

    def close(self) -> None:
        """Ask no more."""
        for task in self._lanes.values():
            task.cancel()


async def _answers(address: str, port: int, path: str) -> bool:
    """Return whether a replica answers 200 on *path*."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(address, port)
            head = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode())
            line = await reader.readline()
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()
    return line.split(b" ")[1:2] == [b"200"]
