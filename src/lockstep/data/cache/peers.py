"""The other nodes of a dataset, asked for the chunks that they own."""

from __future__ import annotations

import asyncio
import http.client
import struct
import time
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

from lockstep.api.backoff import Backoff, Pauses
from lockstep.api.dataset_cache import CachePeer
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.client.connection import Connection, Endpoint

LOST_FOR: Final = 10.0
"""Seconds for which a node that failed is not asked again."""
_PAUSES = Backoff(initial=0.1, cap=1.0, jitter=0.2)
"""Seconds between two questions to a node that is starting; many chunks wait for it at once."""
TIMEOUT: Final = 120.0
"""Seconds that a node may take to give a chunk, which it may have to fetch itself."""
THREADS: Final = 16
"""Chunks of one dataset that other nodes are asked for at once; a thread starts with its first."""


class PeerFailed(Exception):
    """A node does not give what it owns."""


class Peers:
    """The nodes of one dataset; *me* is one of them."""

    def __init__(self, me: str, uid: str, token: str) -> None:
        self.me, self._uid, self.token = me, uid, token
        self._nodes: dict[str, CachePeer] = {}
        self._lines: dict[str, Connection] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="peers")
        self._lost: dict[str, float] = {}
        self._starting: dict[str, float] = {}
        """Nodes that are not there yet, and when that was found."""

    def update(self, nodes: Iterable[CachePeer]) -> None:
        """Note which nodes there are now, and where they listen."""
        for one in nodes:
            was = self._nodes.get(one.node)
            told = (one.address, one.certificate)
            if was is None or (was.address, was.certificate) != told:
                self._lines.pop(one.node, None)
                self._lost.pop(one.node, None)
                self._starting.pop(one.node, None)
        self._nodes = {one.node: one for one in nodes}

    def alive(self) -> list[str]:
        """Return the nodes that answer, this one always."""
        now = time.monotonic()
        found = [one for one in self._nodes if self._lost.get(one, 0.0) <= now]
        return found if self.me in found else [*found, self.me]

    def complete(self) -> list[str]:
        """Return the other nodes that have all of the dataset."""
        nodes = self._nodes
        return [one for one in self.alive() if one != self.me and nodes[one].whole]

    def lost(self, node: str) -> None:
        """Ask *node* for nothing for a while: its share moves to the others."""
        self._lost[node] = time.monotonic() + LOST_FOR

    async def chunk(self, node: str, version: str, number: int, patience: float) -> Any:
        """Return a chunk that *node* owns.

        Nodes of a job start together, each in its own time: one that is starting is waited for,
        *patience* seconds from when that was found. It is no reason to ask the store.

        Raises:
            PeerFailed: when it does not come whole, or the node is late, or is none any more.
            SourceFailed: when its owner answers, and cannot get it either.
        """
        pauses = Pauses(_PAUSES)
        while True:
            try:
                return await self._ask(node, f"v1/{self._uid}/{version}/chunk/{number}")
            except _NotYet as error:
                now = time.monotonic()
                if now - self._starting.setdefault(node, now) >= patience:
                    raise PeerFailed(f"{error}, after {patience:g} s") from error
                await asyncio.sleep(pauses.failed())

    async def chunks(self, node: str, version: str, numbers: Sequence[int]) -> dict[int, bytes]:
        """Return those of several small chunks that *node* gives at once.

        What it does not give is asked for one by one, where it is said why.
        """
        names = ",".join(map(str, numbers))
        try:
            data, _ = await self._get(node, f"v1/{self._uid}/{version}/chunks/{names}")
        except (_NotYet, PeerFailed, SourceFailed):
            return {}
        found: dict[int, bytes] = {}
        view, at = memoryview(data), 0
        for number in numbers:
            if at + 8 > len(view):
                return found
            size, checksum = struct.unpack_from("!II", view, at)
            part = bytes(view[at + 8 : at + 8 + size])
            at += 8 + size
            if len(part) != size or zlib.crc32(part) != checksum:
                return found
            found[number] = part
        return found

    async def _ask(self, node: str, path: str) -> Any:
        data, wanted = await self._get(node, path)
        if wanted and int(wanted, 16) != zlib.crc32(data):
            raise PeerFailed("a chunk came with another checksum than its owner says")
        return data

    async def _get(self, node: str, path: str) -> tuple[Any, str]:
        """Return what *node* gives at *path*, and the checksum that it states."""
        if node not in self._nodes:
            raise PeerFailed("it is no node of the dataset any more")
        address = self._nodes[node].address
        if not address:
            raise _NotYet(f"{node} does not listen yet")
        line = self._lines.get(node)
        if line is None:
            endpoint = Endpoint(address, self._uid, self.token, "", self._nodes[node].certificate)
            line = self._lines[node] = Connection(endpoint, TIMEOUT)
        loop = asyncio.get_running_loop()
        try:
            answer, data = await loop.run_in_executor(
                self._threads, line.request, "GET", f"/{path}", None, {}
            )
        except (http.client.HTTPException, OSError) as error:
            raise PeerFailed(f"{node} at {address}: {error}") from error
        if answer.status == HTTPStatus.NOT_FOUND:
            raise _NotYet(f"{node} has not the version yet")
        if answer.status == HTTPStatus.PRECONDITION_FAILED:
            words = f"{node} says that an object is not the one any more of which the version is"
            raise SourceFailed("SourceChanged", words)
        if answer.status == HTTPStatus.CONFLICT:
            reason, _, words = data.decode(errors="replace").partition(": ")
            text = f"{node} owns the chunk and cannot get it from the store: {words}"
            raise SourceFailed(reason if reason.isalpha() else "SourceUnreachable", text)
        if answer.status != HTTPStatus.OK:
            raise PeerFailed(f"{node} answered {answer.status}: {data.decode(errors='replace')}")
        self._starting.pop(node, None)
        return data, (answer.getheader("etag") or "").strip('"')


class _NotYet(Exception):
    """A node that is starting."""
