"""One version as it is shown: to the kernel by a view, to other nodes and clients by the server."""

from __future__ import annotations

import asyncio
import errno
import json
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from lockstep.data.cache.prefetch import Prefetch
from lockstep.data.cache.serving import Refusal
from lockstep.data.cache.sources import SourceFailed
from lockstep.data.cache.supply import Supply
from lockstep.data.core.epochs import Order, permutation, share
from lockstep.data.core.tree import ROOT, Tree

FILE_MOST: Final = 64 << 20
"""Bytes of a file that one request of a client gets at most."""


class ServedVersion:
    """A version of a dataset, for its readers."""

    def __init__(
        self,
        supply: Supply,
        prefetch: Prefetch,
        about: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.supply, self.prefetch, self._about = supply, prefetch, about
        self.version = supply.stock.manifest.version
        self.tree = Tree(supply.stock.manifest)
        self._loop = loop

    # --- for a view, in threads ---

    def whole(self, index: int) -> Path | None:
        """Return where the file *index* lies whole on this node."""
        stock = self.supply.stock
        return stock.path(index) if stock.whole(index) else None

    def here(self, index: int, start: int, end: int) -> bytes | None:
        """Return the bytes of a file, where they are on this node."""
        return self.supply.here(index, start, end)

    def fetch(self, index: int, start: int, end: int) -> Future[bytes]:
        """Begin to fetch bytes of a file."""
        return asyncio.run_coroutine_threadsafe(self.supply.read(index, start, end), self._loop)

    def opened(self, index: int) -> None:
        """Take note that a file is read."""
        if self.supply.stock.files < len(self.tree.entries):
            self._loop.call_soon_threadsafe(self.prefetch.read, index)

    def about(self) -> bytes:
        """Return how the client library reaches the cache, as JSON."""
        return json.dumps(self._about()).encode()

    # --- for the server ---

    async def chunk(self, number: int) -> tuple[int | None, int, int, Any, int]:
        """Return descriptor (or none), start, end, bytes (where none) and checksum of a chunk."""
        stock = self.supply.stock
        if not 0 <= number < stock.chunks.total:
            raise Refusal(400, f"there is no chunk {number}")
        index = stock.chunks.file(number)
        start, end = stock.chunks.span(index, number)
        data: Any = b""
        if not stock.has(number):
            try:
                data = await self.supply.chunk(index, number, for_peer=True)
            except SourceFailed as error:
                status = 412 if error.reason == "SourceChanged" else 409
                raise Refusal(status, f"{error.reason}: {error}") from error
        self.supply.counts.served += end - start
        checksum = stock.sum(number)
        fd = stock.open(index) if stock.has(number) and checksum is not None else None
        if fd is not None and checksum is not None:
            return fd, start, end, b"", checksum
        if not data and end > start:
            data = await asyncio.to_thread(stock.read, index, start, end)
            if data is None:
                data = await self.supply.chunk(index, number, for_peer=True)
        return None, start, end, data, zlib.crc32(data)

    async def file(self, path: str, start: int, end: int | None) -> tuple[bytes, int]:
        """Return bytes of a file, and its size."""
        node = self._find(path)
        index = self.tree.file(node)
        if index is None:
            raise Refusal(409, f"{path} is a directory", code=errno.EISDIR)
        size = self.tree.entries[index].size
        stop = min(size if end is None else end, size, start + FILE_MOST)
        if start >= stop:
            return b"", size
        self.opened(index)
        data = await asyncio.to_thread(self.supply.here, index, start, stop)
        if data is not None:
            return data, size
        try:
            return await self.supply.read(index, start, stop), size
        except OSError as error:
            raise Refusal(409, str(error.strerror or error), code=error.errno or 0) from error

    def listing(self, path: str) -> Any:
        """Return what a path is: a file, or a directory with what it holds."""
        node = self._find(path)
        if self.tree.file(node) is not None:
            return self._described(path.strip("/"), node)
        inside = f"{path.strip('/')}/" if path.strip("/") else ""
        children = [
            self._described(inside + one.name, one.node) for one in self.tree.children(node)
        ]
        return {"name": path.strip("/"), "type": "directory", "size": 0, "children": children}

    def _described(self, path: str, node: int) -> dict[str, Any]:
        entry = self.tree.entry(node)
        if entry is None:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", "size": entry.size, "mtime": entry.mtime}

    def _find(self, path: str) -> int:
        node = ROOT
        for part in path.strip("/").split("/") if path.strip("/") else ():
            found = self.tree.find(node, part)
            if found is None:
                raise Refusal(404, f"there is no {path}", code=errno.ENOENT)
            node = found
        return node

    async def order(self, body: Any) -> Any:
        """Take what a sampler tells: its seed, epoch, position, rank, and of which files.

        Raises:
            ValueError: when it makes no sense.
        """
        reader = str(body["reader"])
        if body.get("withdraw"):
            self.supply.expected.withdraw(reader)
            return {}
        files = await asyncio.to_thread(self._files, body)
        order = await asyncio.to_thread(_order, files, body)
        self.supply.expected.publish(reader, order)
        self.prefetch.wake()
        return {"files": len(files)}

    def _files(self, body: Any) -> list[int]:
        below, suffix = str(body.get("path", "")).strip("/"), str(body.get("suffix", ""))
        inside = f"{below}/" if below else ""
        found = [
            index
            for index, one in enumerate(self.tree.entries)
            if one.path.startswith(inside) and one.path.endswith(suffix)
        ]
        if len(found) != int(body["count"]):
            raise ValueError(f"the sampler counts {body['count']} files and here are {len(found)}")
        return found


def _order(files: list[int], body: Any) -> Order:
    import numpy as np

    known = np.array(files, np.int64)
    seed, epoch, count = int(body["seed"]), int(body["epoch"]), len(files)
    start, rank, world = int(body.get("start", 0)), int(body["rank"]), int(body["world"])
    if not 0 <= rank < world:
        raise ValueError(f"rank is {rank} of {world}")
    shuffle = bool(body.get("shuffle", True))
    now = permutation(seed, epoch, count) if shuffle else np.arange(count)
    later = permutation(seed, epoch + 1, count) if shuffle else np.arange(count)
    return Order(
        known[share(now, start, rank, world)], following=known[share(later, 0, rank, world)]
    )
