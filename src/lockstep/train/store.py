"""Copies of ranks' states in a directory that outlives the pods: written, found, read.

Each rank has an index, ``rank-00003.json``, that names its whole copies, the newest first; it is
replaced at once by a rename, so that a copy counts or does not, whenever the launcher is killed.
Nothing is found by listing. A copy is a line of JSON and the bytes of a slot; nothing is pickled.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.train.segment import Segment, Whole

Json = dict[str, Any]

KEPT = 3
"""Copies of a rank: those of the last two saves, and one more where a pod is told to end."""
_CHUNK = 16 << 20
_LONGEST_HEAD = 4096
_LONGEST_INDEX = 1 << 20


class NotStored(Exception):
    """A copy is not there or not whole; the message says which, and what is wrong with it."""


@dataclass(frozen=True)
class Saved:
    """A save that is whole on disk."""

    step: int
    at: float
    """Seconds since 1970."""


class Store:
    """The copies of one job in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self.saved: dict[int, Saved] = {}
        """The newest save of each rank in this launcher's life."""
        self.problem = ""
        """Why the last save failed; empty when it did not."""

    def save(self, rank: int, size: int, segment: Segment, whole: Whole) -> bool:
        """Write the copy *whole* of *rank*, one of *size*; say whether it is there now.

        The copy is taken into memory of its own first, so that the rank may go on meanwhile.
        """
        held = Held.take(segment, whole)
        if held is None:
            return False
        return self.write(rank, size, held)

    def write(self, rank: int, size: int, held: Held) -> bool:
        """Write what is *held* of *rank*, one of *size*; say whether it is there now."""
        with self._lock:
            try:
                if not any(one["step"] == held.step for one in self._index(rank, size)):
                    self._write(rank, size, held)
                self.saved[rank] = Saved(held.step, time.time())
                self.problem = ""
            except OSError as error:
                self.problem = f"step {held.step} of rank {rank} is not saved: {error}"
                return False
            finally:
                held.memory.close()
        return True

    def steps(self, rank: int, size: int) -> list[int]:
        """Return the steps of which *rank*, one of *size*, has whole copies, the newest first."""
        found = []
        for one in self._index(rank, size):
            with contextlib.suppress(OSError):
                if (self._directory / one["file"]).stat().st_size == one["bytes"]:
                    found.append(int(one["step"]))
        return sorted(found, reverse=True)

    def load(self, rank: int, size: int, step: int, make: Callable[[int, int], Segment]) -> None:
        """Read the copy of *step* into the segment that *make* makes.

        *make* is told the bytes of a slot and the layout's checksum.

        Raises:
            NotStored: when it is not there or not what was written.
        """
        found = [one for one in self._index(rank, size) if one["step"] == step]
        if not found:
            raise NotStored(f"{self._directory} has no copy of step {step} of rank {rank}")
        path = self._directory / found[0]["file"]
        try:
            with path.open("rb") as file:
                head = json.loads(file.readline(_LONGEST_HEAD))
                segment = make(int(head["slot"]), int(head["layout"]))
                _read(file, head, segment)
        except (OSError, ValueError, KeyError) as error:
            raise NotStored(f"{path}: {error}") from error

    def _write(self, rank: int, size: int, held: Held) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"rank-{rank:05}-step-{held.step:012}.copy"
        part = self._directory / f".{name}.{os.getpid()}"
        fd = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb", buffering=0) as file:
                total = file.write(held.head())
                view = memoryview(held.memory)
                for at in range(0, len(view), _CHUNK):
                    total += _whole_write(file.fileno(), view[at : at + _CHUNK])
                view.release()
                os.fsync(file.fileno())
            part.replace(self._directory / name)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        entry = {"step": held.step, "file": name, "bytes": total, "size": size}
        self._keep(rank, [entry, *self._index(rank, None)])

    def _keep(self, rank: int, entries: list[Json]) -> None:
        kept, gone = entries[:KEPT], entries[KEPT:]
        path = self._directory / f"rank-{rank:05}.json"
        part = path.with_suffix(f".{os.getpid()}")
        with part.open("w") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(self._directory)
        for one in gone:
            (self._directory / str(one["file"])).unlink(missing_ok=True)

    def _index(self, rank: int, size: int | None) -> list[Json]:
        try:
            with (self._directory / f"rank-{rank:05}.json").open() as file:
                entries = json.loads(file.read(_LONGEST_INDEX))
            return [
                one
                for one in entries
                if os.sep not in one["file"] and (size is None or one["size"] == size)
            ]
        except (OSError, ValueError, KeyError, TypeError):
            return []


@dataclass(frozen=True)
class Held:
    """A copy in memory of its own."""

    step: int
    slot: int
    layout: int
    lengths: tuple[int, int, int, int]
    memory: mmap.mmap

    @classmethod
    def take(cls, segment: Segment, whole: Whole) -> Held | None:
        """Copy *whole*; None where the rank has written over it meanwhile."""
        size, start = whole.data + whole.size, segment.start(whole.slot)
        memory = mmap.mmap(-1, size)
        for at in range(0, size, _CHUNK):
            end = min(at + _CHUNK, size)
            memory[at:end] = segment.map[start + at : start + end]
        if whole not in segment.whole():
            memory.close()
            return None
        lengths = (whole.table, whole.plain, whole.data, whole.size)
        return cls(whole.step, segment.slot_bytes, segment.layout, lengths, memory)

    def head(self) -> bytes:
        """Return the line before the bytes."""
        view = memoryview(self.memory)
        crc = zlib.crc32(view)
        view.release()
        head = {
            "step": self.step,
            "slot": self.slot,
            "layout": self.layout,
            "lengths": self.lengths,
            "crc": crc,
        }
        return json.dumps(head).encode() + b"\n"


def take(segment: Segment, step: int) -> Held | None:
    """Return a copy of *step* in memory of its own; None where there is none."""
    for whole in segment.whole():
        if whole.step == step:
            return Held.take(segment, whole)
    return None


def _read(file: Any, head: Json, segment: Segment) -> None:
    table, plain, data, length = (int(one) for one in head["lengths"])
    slot = segment.begin()
    at, end, crc = segment.start(slot), segment.start(slot) + data + length, 0
    while at < end:
        chunk = file.read(min(_CHUNK, end - at))
        if not chunk:
            raise ValueError("it is cut short")
        segment.map[at : at + len(chunk)] = chunk
        crc = zlib.crc32(chunk, crc)
        at += len(chunk)
    if crc != head["crc"]:
        raise ValueError("its bytes are not those that were written")
    segment.end(slot, int(head["step"]), 0, (table, plain, data, length))


def _whole_write(fd: int, view: memoryview) -> int:
    done = 0
    while done < len(view):
        done += os.write(fd, view[done:])
    return done


def _sync(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
