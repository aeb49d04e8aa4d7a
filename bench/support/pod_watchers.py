"""Watches over pods on connections of their own, which check that they see all of them in order."""

from __future__ import annotations

import asyncio
import re
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.support.pod_storm import context

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_LONGEST = 48
"""Bytes of the longest match."""
_WATCH = (
    b"GET /api/v1/pods?watch=1&resourceVersion=%b HTTP/1.1\r\n"
    b"Host: 127.0.0.1\r\nAccept: application/json\r\n\r\n"
)
_LIST = b"GET /api/v1/pods?limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Watching(asyncio.Protocol):
    """One watch; it notes the versions of the objects that it is sent."""

    def __init__(self, since: bytes, wanted: int, done: asyncio.Future[None]) -> None:
        self.versions: list[bytes] = []
        self.done = done
        self._since = since
        self._wanted = wanted
        self._rest = b""
        self.started: asyncio.Future[None] = done.get_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        transport.write(_WATCH % self._since)

    def data_received(self, data: bytes) -> None:
        if not self.started.done():
            assert data.startswith(b"HTTP/1.1 200"), data
            self.started.set_result(None)
        whole = self._rest + data
        end = 0
        for match in _VERSION.finditer(whole):
            self.versions.append(match[1])
            end = match.end()
        self._rest = whole[max(end, len(whole) - _LONGEST) :]
        if len(self.versions) >= self._wanted and not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("the watch was cut off"))


def _itself(one: Watching) -> Watching:
    return one


async def _watch(data: Path, port: int, watchers: int, wanted: int) -> None:
    loop = asyncio.get_running_loop()
    tls = context(data)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(_LIST)
    found = _VERSION.search(await reader.read())
    assert found is not None
    writer.close()
    watching = []
    for _ in range(watchers):
        own = Watching(found[1], wanted, loop.create_future())
        await loop.create_connection(partial(_itself, own), "127.0.0.1", port, ssl=tls)
        watching.append(own)
    await asyncio.gather(*(one.started for one in watching))
    print("connected", flush=True)
    await asyncio.gather(*(one.done for one in watching))
    for one in watching:
        seen = [int(version) for version in one.versions]
        assert len(seen) == wanted, f"{len(seen)} events instead of {wanted}"
        assert all(a < b for a, b in pairwise(seen)), "out of order"
        assert one.versions == watching[0].versions, "two watchers saw different events"


def main() -> None:
    import uvloop

    data, port, watchers, wanted = sys.argv[1:]
    uvloop.run(_watch(Path(data), int(port), int(watchers), int(wanted)))


if __name__ == "__main__":
    main()
