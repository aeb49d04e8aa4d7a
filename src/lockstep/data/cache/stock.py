"""What one version of a dataset has on this node's disk, chunk by chunk.

``BASE/VERSION/`` is the tree of whole files, which pods see by bind mount. A file of several chunks
that is not whole lies beside it, in its full length with holes. Which chunks are there, with their
checksums, stands in an array in a file: a chunk is written before it is marked, and its mark goes
before it does, so that a kill at any moment leaves no chunk that is marked and not whole.

A power cut may leave marks without their chunks, and files without their bytes. So once all files
are here, they are brought to the disk and the version is *settled*; of one that is not, each chunk
is compared with its sum after the machine was started again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import stat
import threading
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from lockstep.data.core.chunks import Chunks
from lockstep.data.core.manifest import Manifest
from lockstep.data.core.tiers import in_blocks
from lockstep.keys.files import BOOT_ID, replace_file

PRESENT: Final = 1 << 63
SUMMED: Final = 1 << 62
_SUM: Final = (1 << 32) - 1
SETTLED: Final = "settled"


class Stock:
    """The chunks of *manifest* below *base*; its methods may be called from any thread."""

    def __init__(self, base: Path, manifest: Manifest, boot_id: Path = BOOT_ID) -> None:
        version = manifest.version
        self.manifest, self.chunks = manifest, Chunks(manifest)
        self.place = base / version
        self._parts, self._drafts = base / f".parts-{version}", base / ".drafts"
        self._place, self._draft = str(self.place), str(self._drafts)
        for one in (self.place, self._parts, self._drafts):
            one.mkdir(exist_ok=True)
        path = base / f".state-{version}"
        self._trust, self._boot = base / f".trust-{version}", boot_id.read_text().strip()
        total = max(1, self.chunks.total)
        with path.open("ab") as file:
            file.truncate(8 * total)
        self._state = np.memmap(path, np.uint64, "r+", shape=(total,))
        self._checked = bytearray(total)
        """Chunks that were written or compared with their sum in this life."""
        self._lock = threading.Lock()
        self._settled = False
        self._whole = np.zeros(len(manifest.entries), np.bool_)
        self.held = np.zeros(len(manifest.entries), np.int64)
        """Bytes of each file that are here, in blocks of the disk."""
        self._below: dict[str, range | list[int]] = {}
        self.files = self.bytes = 0
        """Whole files, and bytes of all that is here."""

    # --- what is here ---

    def recover(self) -> None:
        """Compare the marks with the disk; what only one of them knows is not here."""
        trust = self._trust.read_text() if self._trust.exists() else ""
        shutil.rmtree(self._drafts, ignore_errors=True)
        self._drafts.mkdir()
        for index, entry in enumerate(self.manifest.entries):
            numbers = self.chunks.all_of(index)
            if _is_file(self._name(index), entry.size):
                for one in numbers:
                    if not self._state[one]:
                        self._state[one] = PRESENT
            elif len(numbers) == 1 or not _is_file(str(self._part(index)), entry.size):
                self._state[numbers.start : numbers.stop] = 0
            if trust not in (self._boot, SETTLED):
                self._compare(index)
            self._count(index)
            if self._whole[index] and len(numbers) > 1 and not self.path(index).exists():
                self._finish(index)  # killed between the last chunk and the move
        self.files = int(self._whole.sum())
        if trust != SETTLED:
            replace_file(self._trust, self._boot.encode())
        self._settled = trust == SETTLED

    def _compare(self, index: int) -> None:
        """Let go of a file unless all of its chunks that are here are as they were written."""
        fd = self.open(index)
        there = [one for one in self.chunks.all_of(index) if self._state[one]]
        same = fd is not None and all(self._same(fd, index, one) for one in there)
        if fd is not None:
            os.close(fd)
        if not same:
            self._drop(index)

    def _settle(self) -> None:
        """Bring all files and marks to the disk, and note that they are there."""
        self._state.flush()
        fd = os.open(self.place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None).syncfs(fd) == 0:
                replace_file(self._trust, SETTLED.encode())
                self._settled = True
        finally:
            os.close(fd)

    def _count(self, index: int) -> None:
        there = [one for one in self.chunks.all_of(index) if self._state[one]]
        spans = [self.chunks.span(index, one) for one in there]
        self.bytes += sum(end - start for start, end in spans)
        self.held[index] = sum(in_blocks(end - start) for start, end in spans)
        self._whole[index] = len(there) == int(self.chunks.counts[index])

    @property
    def used(self) -> int:
        """Return the bytes that lie on the disk."""
        return int(self.held.sum())

    def has(self, chunk: int) -> bool:
        """Tell whether *chunk* is here."""
        return bool(self._state[chunk])

    def sum(self, chunk: int) -> int | None:
        """Return the checksum (CRC-32) of *chunk*, if it is known."""
        mark = int(self._state[chunk])
        return mark & _SUM if mark & SUMMED else None

    def whole(self, index: int) -> bool:
        """Tell whether the file *index* is here as a whole."""
        return bool(self._whole[index])

    @property
    def whole_files(self) -> Any:
        """Return for each file whether it is here as a whole (an array of booleans)."""
        return self._whole

    def below(self, target: str) -> range | list[int]:
        """Return the files at or below the path *target*; ``/`` is all."""
        found = self._below.get(target)
        if found is None:
            place, entries = target.strip("/"), self.manifest.entries
            inside = f"{place}/"
            found = self._below[target] = (
                range(len(entries))
                if not place
                else [
                    index
                    for index, one in enumerate(entries)
                    if one.path == place or one.path.startswith(inside)
                ]
            )
        return found

    def path(self, index: int) -> Path:
        """Return where the file *index* lies, or will."""
        return self.place / self.manifest.entries[index].path

    def _name(self, index: int) -> str:
        """Return the same as text: a path's own object costs as much as a small file's write."""
        return f"{self._place}/{self.manifest.entries[index].path}"

    # --- bytes ---

    def read(self, index: int, start: int, end: int) -> bytes | None:
        """Return bytes of the file *index*; none when not all of them are here."""
        numbers = self.chunks.of(index, start, end)
        for one in numbers:
            if not self._state[one]:
                return None
        fd = self.open(index)
        if fd is None:
            return None
        try:
            for one in numbers:
                if not self._checked[one] and not self._check(fd, index, one):
                    return None
            data = os.pread(fd, end - start, start)
        finally:
            os.close(fd)
        return data if len(data) == end - start else None

    def open(self, index: int) -> int | None:
        """Open the file *index* as far as it is here; none when nothing of it is."""
        places = (self._name(index), str(self._part(index)))
        for path in places if self._whole[index] else reversed(places):
            with contextlib.suppress(OSError):
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return None

    def _check(self, fd: int, index: int, chunk: int) -> bool:
        """Compare a chunk of a life before with its sum; what differs is forgotten."""
        if self.sum(chunk) is not None and not self._same(fd, index, chunk):
            self.evict(index)
            return False
        self._checked[chunk] = 1
        return True

    def _same(self, fd: int, index: int, chunk: int) -> bool:
        start, end = self.chunks.span(index, chunk)
        self._checked[chunk] = zlib.crc32(os.pread(fd, end - start, start)) == self.sum(chunk)
        return bool(self._checked[chunk])

    def put(self, index: int, chunk: int, data: Any) -> int:
        """Keep *data* as *chunk* of the file *index*; return the blocks that it takes.

        Raises:
            OSError: when the disk does not take it.
        """
        mark = PRESENT | SUMMED | zlib.crc32(data)
        if int(self.chunks.counts[index]) == 1:
            self._put_file(index, data)
        else:
            self._put_part(index, chunk, data)
        taken = in_blocks(len(data))
        with self._lock:
            if self._state[chunk]:
                return 0
            self._state[chunk] = mark
            self._checked[chunk] = 1
            self.held[index] += taken
            self.bytes += len(data)
            numbers = self.chunks.all_of(index)
            if len(numbers) == 1 or bool(np.all(self._state[numbers.start : numbers.stop])):
                if len(numbers) > 1:
                    self._finish(index)
                self._whole[index] = True
                self.files += 1
                if self.files == len(self._whole):
                    self._settle()
        return taken

    def _put_file(self, index: int, data: Any) -> None:
        entry = self.manifest.entries[index]
        draft = f"{self._draft}/{index}"
        fd = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o444)
        try:
            _write(fd, data, 0)
            os.utime(fd, (entry.mtime, entry.mtime))
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)
        _move(draft, self._name(index))

    def _put_part(self, index: int, chunk: int, data: Any) -> None:
        path, entry = self._part(index), self.manifest.entries[index]
        fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444)
        try:
            if os.fstat(fd).st_size != entry.size:
                os.ftruncate(fd, entry.size)
            _write(fd, data, self.chunks.span(index, chunk)[0])
        finally:
            os.close(fd)

    def _finish(self, index: int) -> None:
        entry, part = self.manifest.entries[index], self._part(index)
        os.utime(part, (entry.mtime, entry.mtime))
        _move(str(part), self._name(index))

    def evict(self, index: int) -> int:
        """Let go of the file *index*; return the blocks that are free then.

        Who has it open reads on; the disk has the room when it is closed.
        """
        with self._lock:
            numbers = self.chunks.all_of(index)
            there = [one for one in numbers if self._state[one]]
            spans = [self.chunks.span(index, one) for one in there]
            if self._settled:
                replace_file(self._trust, self._boot.encode())
                self._settled = False
            self._drop(index)
            freed = int(self.held[index])
            self.held[index] = 0
            self.bytes -= sum(end - start for start, end in spans)
            self.files -= int(self._whole[index])
            self._whole[index] = False
        return freed

    def _drop(self, index: int) -> None:
        numbers = self.chunks.all_of(index)
        self._state[numbers.start : numbers.stop] = 0
        self.path(index).unlink(missing_ok=True)
        self._part(index).unlink(missing_ok=True)

    def _part(self, index: int) -> Path:
        return self._parts / str(index)


def forget(base: Path, version: str) -> None:
    """Remove *version* from *base*."""
    for note in (base / f".state-{version}", base / f".trust-{version}"):
        note.unlink(missing_ok=True)
    for one in (base / version, base / f".parts-{version}"):
        shutil.rmtree(one, ignore_errors=True)


def _is_file(path: str, size: int) -> bool:
    try:
        seen = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(seen.st_mode) and seen.st_size == size


def _write(fd: int, data: Any, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def _move(draft: str, target: str) -> None:
    try:
        os.replace(draft, target)  # noqa: PTH105  texts, see Stock._name
    except FileNotFoundError:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        os.replace(draft, target)  # noqa: PTH105
