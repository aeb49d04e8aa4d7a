"""Answers the kernel for one view: a tree that is only read, over what the cache has or fetches.

A speaker keeps no state that the next one could lack: numbers of files follow from the manifest,
and how files are open stands in a file. So a cache that is killed is replaced, and the kernel sends
again what the dead one had not answered; readers see a pause.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, Protocol

from lockstep.data.core.tree import ROOT, Tree
from lockstep.data.view import wire
from lockstep.data.view.opens import Opens

log = logging.getLogger(__name__)

VALID: Final = 86400
"""Seconds for which the kernel keeps names and attributes; a version never changes."""
PASS_FROM: Final = 128 << 10
"""Smaller files are kept by the kernel itself, which costs less than to pass them through."""
ABOUT: Final = ".lockstep"
"""A file in the root, in no listing: where the cache is reached, for the client library."""
_LISTINGS: Final = 64


class Content(Protocol):
    """What a view shows."""

    version: str

    def whole(self, index: int) -> Path | None:
        """Return where the file *index* lies whole on this node."""

    def here(self, index: int, start: int, end: int) -> bytes | None:
        """Return the bytes of a file, where they are on this node."""

    def fetch(self, index: int, start: int, end: int) -> Future[bytes]:
        """Begin to fetch bytes of a file; an OSError says what the reader is told."""

    def opened(self, index: int) -> None:
        """Take note that a file is read."""

    def about(self) -> bytes:
        """Return how the client library reaches the cache, as JSON."""


class Speaker:
    """One view's side of /dev/fuse; ``run`` is for a thread of its own."""

    def __init__(self, fd: int, tree: Tree, content: Content, opens: Opens, name: str) -> None:
        self._fd, self._tree, self._content, self._opens = fd, tree, content, opens
        self._waiting: dict[int, Future[bytes]] = {}
        self._listings: dict[int, list[tuple[str, int]]] = {}
        self._about = ROOT + tree.size
        self._can_pass = True
        self._uid, self._gid = os.geteuid(), os.getegid()
        self._calls: dict[int, Callable[[int, int, memoryview], None]] = {
            wire.LOOKUP: self._lookup,
            wire.GETATTR: self._getattr,
            wire.OPEN: self._open,
            wire.READ: self._read,
            wire.RELEASE: self._release,
            wire.READDIR: self._readdir,
            wire.READDIRPLUS: self._readdirplus,
            wire.STATFS: self._statfs,
            wire.INIT: self._init,
        }
        self._thread = threading.Thread(target=self.run, name=f"view {name}", daemon=True)

    def start(self) -> None:
        """Answer the kernel from now on; what a dead speaker left is asked for again."""
        with contextlib.suppress(OSError):  # a kernel before 6.9 has no such notice
            os.write(self._fd, wire.OUT.pack(wire.OUT.size, wire.NOTIFY_RESEND, 0))
        self._thread.start()

    def run(self) -> None:
        """Answer until the view is taken away."""
        buffer = bytearray(wire.REQUEST_MOST + wire.READ_MOST)
        view = memoryview(buffer)
        while True:
            try:
                size = os.readv(self._fd, [buffer])
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue
                if error.errno not in (errno.ENODEV, errno.EBADF):
                    log.warning("a view ends: %s", error)
                return
            _, opcode, unique, node, *_ = wire.IN.unpack_from(buffer)
            self._take(opcode, unique, node, view[wire.IN.size : size])

    def _take(self, opcode: int, unique: int, node: int, body: memoryview) -> None:
        call = self._calls.get(opcode)
        if call is not None:
            try:
                call(unique, node, body)
            except OSError as error:
                self._fail(unique, error.errno or errno.EIO)
            except Exception:
                log.exception("request %d of a view failed", opcode)
                self._fail(unique, errno.EIO)
        elif opcode == wire.INTERRUPT:
            self._interrupt(*struct.unpack_from("<Q", body))
        elif opcode in wire.CHANGES:
            self._fail(unique, errno.EROFS)
        elif opcode in (wire.DESTROY, wire.RELEASEDIR, wire.ACCESS):
            self._answer(unique)
        elif opcode not in wire.SILENT:
            # Without an answer once, the kernel does flush, opendir and attributes by itself.
            self._fail(unique, errno.ENOSYS)

    def _answer(self, unique: int, *parts: Any) -> None:
        size = wire.OUT.size + sum(len(part) for part in parts)
        # A request that was interrupted is not there any more.
        with contextlib.suppress(OSError):
            os.writev(self._fd, [wire.OUT.pack(size, 0, unique), *parts])

    def _fail(self, unique: int, code: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._fd, wire.OUT.pack(wire.OUT.size, -code, unique))

    # --- names and attributes ---

    def _attributes(self, node: int) -> bytes:
        if node == self._about:
            return self._packed(node, len(self._content.about()), 0.0, stat.S_IFREG | 0o444)
        entry = self._tree.entry(node)
        if entry is None:
            return self._packed(node, 0, 0.0, stat.S_IFDIR | 0o755)
        return self._packed(node, entry.size, entry.mtime, stat.S_IFREG | 0o444)

    def _packed(self, node: int, size: int, mtime: float, mode: int) -> bytes:
        seconds = int(mtime)
        nanos = int((mtime - seconds) * 1e9)
        links = 2 if stat.S_ISDIR(mode) else 1
        times = (seconds, seconds, seconds, nanos, nanos, nanos)
        owner = (self._uid, self._gid)
        return wire.ATTR.pack(node, size, -(-size // 512), *times, mode, links, *owner, 0, 4096, 0)

    def _entry(self, node: int) -> bytes:
        valid = 0 if node == self._about else VALID
        return wire.ENTRY.pack(node, 0, valid, valid, 0, 0) + self._attributes(node)

    def _lookup(self, unique: int, node: int, body: memoryview) -> None:
        name = os.fsdecode(bytes(body).rstrip(b"\0"))
        found = self._tree.find(node, name)
        if found is None and node == ROOT and name == ABOUT:
            found = self._about
        if found is None:
            # Number 0: the kernel keeps in mind that there is no such name.
            self._answer(unique, wire.ENTRY.pack(0, 0, VALID, 0, 0, 0), bytes(wire.ATTR.size))
        else:
            self._answer(unique, self._entry(found))

    def _getattr(self, unique: int, node: int, body: memoryview) -> None:
        valid = 0 if node == self._about else VALID
        self._answer(unique, wire.ATTR_OUT.pack(valid, 0, 0), self._attributes(node))

    def _listing(self, node: int) -> list[tuple[str, int]]:
        found = self._listings.get(node)
        if found is None:
            if self._tree.file(node) is not None:
                raise OSError(errno.ENOTDIR, "no directory")
            found = [(".", node), ("..", ROOT)]
            found += [(one.name, one.node) for one in self._tree.children(node)]
            if len(self._listings) >= _LISTINGS:
                self._listings.clear()
            self._listings[node] = found
        return found

    def _readdir(self, unique: int, node: int, body: memoryview) -> None:
        self._list(unique, node, body, plus=False)

    def _readdirplus(self, unique: int, node: int, body: memoryview) -> None:
        self._list(unique, node, body, plus=True)

    def _list(self, unique: int, node: int, body: memoryview, *, plus: bool) -> None:
        _, offset, room, *_ = wire.READ_IN.unpack_from(body)
        listing, parts = self._listing(node), list[bytes]()
        for position in range(offset, len(listing)):
            name, child = listing[position]
            raw = os.fsencode(name)
            kind = stat.S_IFDIR if self._tree.file(child) is None else stat.S_IFREG
            one = wire.DIRENT.pack(child, position + 1, len(raw), kind >> 12) + raw
            one += bytes(-len(one) % 8)
            if plus:
                dots = name in (".", "..")
                nothing = bytes(wire.ENTRY.size + wire.ATTR.size)
                one = (nothing if dots else self._entry(child)) + one
            room -= len(one)
            if room < 0:
                break
            parts.append(one)
        self._answer(unique, b"".join(parts))

    def _statfs(self, unique: int, node: int, body: memoryview) -> None:
        blocks = sum(-(-one.size // 4096) for one in self._tree.entries[:1_000_000])
        files = len(self._tree.entries)
        self._answer(unique, wire.STATFS_OUT.pack(blocks, 0, 0, files, 0, 4096, 255, 4096, 0))

    # --- files ---

    def _open(self, unique: int, node: int, body: memoryview) -> None:
        index = self._tree.file(node)
        if index is None or node == self._about:
            self._answer(unique, wire.OPEN_OUT.pack(0, 1 if node == self._about else 0, 0))
            return
        (flags,) = struct.unpack_from("<I", body)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, "read only")
        self._content.opened(index)
        backing, count = self._opens.get(index)
        if count == 0:
            backing = self._back(index)
        self._opens.put(index, backing, count + 1)
        how = wire.FOPEN_PASSTHROUGH if backing else wire.FOPEN_KEEP_CACHE
        self._answer(unique, wire.OPEN_OUT.pack(0, how | wire.FOPEN_NOFLUSH, backing))

    def _back(self, index: int) -> int:
        """Register the real file with the kernel; 0 where that cannot be."""
        if not self._can_pass or self._tree.entries[index].size < PASS_FROM:
            return 0
        path = self._content.whole(index)
        if path is None:
            return 0
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            # Of a buffer that may be written the result is the call's own, which is the number.
            asked = bytearray(wire.BACKING_MAP.pack(fd, 0, 0))
            number: int = fcntl.ioctl(self._fd, wire.BACKING_OPEN, asked, True)
        except OSError as error:
            self._can_pass = error.errno not in (errno.EPERM, errno.ENOTTY, errno.EOPNOTSUPP)
            return 0
        else:
            return number
        finally:
            os.close(fd)

    def _release(self, unique: int, node: int, body: memoryview) -> None:
        self._answer(unique)
        index = self._tree.file(node)
        if index is None:
            return
        backing, count = self._opens.get(index)
        if count > 1:
            self._opens.put(index, backing, count - 1)
            return
        self._opens.put(index, 0, 0)
        if backing:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._fd, wire.BACKING_CLOSE, struct.pack("<I", backing))

    def _read(self, unique: int, node: int, body: memoryview) -> None:
        _, offset, size, *_ = wire.READ_IN.unpack_from(body)
        index = self._tree.file(node)
        if index is None or node == self._about:
            self._answer(unique, self._content.about()[offset : offset + size])
            return
        end = min(offset + size, self._tree.entries[index].size)
        if end <= offset:
            self._answer(unique)
            return
        data = self._content.here(index, offset, end)
        if data is not None:
            self._answer(unique, data)
            return
        future = self._content.fetch(index, offset, end)
        self._waiting[unique] = future
        future.add_done_callback(lambda done: self._arrived(unique, done))

    def _arrived(self, unique: int, done: Future[bytes]) -> None:
        if self._waiting.pop(unique, None) is None:
            return  # the reader was interrupted
        try:
            data = done.result()
        except OSError as error:
            self._fail(unique, error.errno or errno.EIO)
        except BaseException:
            # The cache ends; its successor is asked again.
            return
        else:
            self._answer(unique, data)

    def _interrupt(self, unique: int) -> None:
        """Let a reader go that got a signal while it waited."""
        if self._waiting.pop(unique, None) is not None:
            self._fail(unique, errno.EINTR)

    # --- the session ---

    def _init(self, unique: int, node: int, body: memoryview) -> None:
        _, minor, readahead, low, high = wire.INIT_IN.unpack_from(body)
        offered = low | high << 32
        wanted = (
            wire.ASYNC_READ
            | wire.ASYNC_DIO
            | wire.PARALLEL_DIROPS
            | wire.DO_READDIRPLUS
            | wire.READDIRPLUS_AUTO
            | wire.MAX_PAGES
            | wire.NO_OPENDIR
            | wire.INIT_EXT
            | wire.PASSTHROUGH
            | wire.HAS_RESEND
        )
        flags = wanted & offered
        answer = wire.INIT_OUT.pack(
            *(7, min(minor, 40), max(readahead, wire.READ_MOST), flags & 0xFFFFFFFF),
            *(64, 48, 4096, 1, wire.READ_MOST >> 12, 0, flags >> 32),
            1 if flags & wire.PASSTHROUGH else 0,
        )
        self._answer(unique, answer)
