"""A node that lost its power closes no connection; the router must find out by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fabric import Fabric, ip, needs_namespaces
from tests.support.waiting import eventually

from lockstep.serve.router.upstream import Pool

SERVER = """
import socket, time
server = socket.create_server(("", 8080))
kept = []
while True:
    kept.append(server.accept())
"""


class Lost:
    """Takes an answer that never comes."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], *, framed: bool) -> None: ...

    def on_body(self, data: bytes) -> None: ...

    def on_read(self) -> None: ...

    def on_complete(self) -> None: ...

    def on_writable(self, writable: bool) -> None: ...

    def on_lost(self) -> None:
        self.lost.set()


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A node whose replica takes requests and does not answer."""
    needs_namespaces()
    made = Fabric(nodes=1, rails=0).start()
    replica = made.popen("n1", ["python3", "-c", SERVER], tmp_path / "log")
    yield made
    replica.kill()
    replica.wait()
    made.stop()


async def test_request_on_a_node_without_power_is_lost_in_seconds(fabric: Fabric) -> None:
    pool = Pool(f"{fabric.host.rpartition('.')[0]}.1", 8080)

    async def accepted() -> bool:
        try:
            pool.give_back(await pool.connect(5))
        except OSError:
            return False
        return True

    await eventually(accepted, 20, "the replica accepts a connection")
    kept = pool.idle()
    assert kept is not None
    taker = Lost()
    ip("link", "set", f"{fabric.tag}v1", "down")
    kept.begin(taker)
    kept.transport.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")

    async def lost() -> bool:
        return taker.lost.is_set()

    await eventually(lost, 30, "the request is lost, to be sent to another replica")
