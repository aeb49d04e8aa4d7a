"""Checkpoints of one job in a place that outlives its pods: which are whole, and where.

A checkpoint is a directory that counts once ``index.json`` names it. That is replaced by a rename,
in an object store by a conditional put, after the manifest of the checkpoint, which is written
after all receipts of its ranks. So it counts or does not, whenever a process is killed. Nothing is
found by listing.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from lockstep.train import storage
from lockstep.train.state import Json
from lockstep.train.storage import Place

KEPT = 3
"""Checkpoints: those of the last two saves, and one more where a pod is told to end."""
INDEX = "index.json"
MANIFEST = "manifest.json"


class NotStored(Exception):
    """A checkpoint is not there or not whole; the message says which, and what is wrong with it."""


@dataclass(frozen=True)
class Entry:
    """A whole checkpoint."""

    step: int
    directory: str
    """Its name below that of the job."""
    size: int
    """Ranks that wrote it."""
    free: bool
    """Whether any number of ranks can go on from it."""
    at: float
    """When it was whole, Unix time."""


def read_index(data: bytes | str) -> list[Entry]:
    """Return the whole checkpoints of an index, the newest first; none where it is no index."""
    try:
        found = [Entry(**one) for one in json.loads(data)]
        good = [one for one in found if os.sep not in one.directory]
        return sorted(good, key=lambda one: one.step, reverse=True)
    except (ValueError, TypeError):
        return []


class Catalogue:
    """The checkpoints of one job."""

    def __init__(self, directory: Place) -> None:
        self.directory = directory

    def entries(self) -> list[Entry]:
        """Return the whole checkpoints, the newest first; none where that cannot be read."""
        try:
            return read_index(storage.read(self.directory / INDEX))
        except OSError:
            return []

    def add(self, entry: Entry) -> None:
        """Let *entry* count, and drop the oldest beyond those that are kept.

        Raises:
            OSError: when that cannot be written.
        """
        gone: list[Entry] = []

        def added(before: bytes | None) -> bytes:
            others = [one for one in read_index(before or b"[]") if one.step != entry.step]
            ordered = sorted([entry, *others], key=lambda one: one.step, reverse=True)
            gone[:] = ordered[KEPT:]
            return _json([asdict(one) for one in ordered[:KEPT]])

        storage.change(self.directory / INDEX, added)
        for one in gone:
            storage.remove(self.directory / one.directory)

    def find(self, step: int) -> Place:
        """Return the directory of the checkpoint after *step* steps.

        Raises:
            NotStored: when there is none.
        """
        for one in self.entries():
            if one.step == step:
                return self.directory / one.directory
        raise NotStored(f"{self.directory} has no checkpoint of step {step}")


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def write(path: Place, content: Any) -> int:
    """Put *content* as JSON at *path*, all of it or nothing; return its checksum."""
    data = _json(content)
    storage.put(path, data)
    return zlib.crc32(data)


def write_manifest(directory: Place, content: Json) -> None:
    """Put the manifest of the checkpoint in *directory*, which is whole with it.

    In an object store the first to put it wins.
    """
    whole = {"crc": _sum(content), "manifest": content}
    storage.put(directory / MANIFEST, _json(whole), new=True)


def _sum(content: Json) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def receipt_name(rank: int) -> str:
    """Return the name of what *rank* tells of its part of a checkpoint."""
    return f"receipt-{rank:05}.json"


def manifest(directory: Place, step: int) -> Json:
    """Return the manifest of the checkpoint in *directory*.

    Raises:
        NotStored: when it is not whole, of another step, or of another job.
    """
    path = directory / MANIFEST
    try:
        whole = json.loads(storage.read(path))
        found: Json = whole["manifest"]
        if whole["crc"] != _sum(found):
            raise NotStored(f"{path}: its bytes are not those that were written")
        if found["job"] != directory.parent.name:
            raise NotStored(f"{path} belongs to the job {found['job']}")
        if found["step"] != step:
            raise NotStored(f"{path} is of step {found['step']}, not {step}")
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotStored(f"{path}: {error}") from error


def receipt(directory: Place, rank: int, checksum: int) -> Json:
    """Return what *rank* told of its part.

    Raises:
        NotStored: when it is not what the manifest says.
    """
    path = directory / receipt_name(rank)
    try:
        data = storage.read(path)
        if zlib.crc32(data) != checksum:
            raise NotStored(f"{path}: its bytes are not those that were written")
        found: Json = json.loads(data)
        return found
    except (OSError, ValueError) as error:
        raise NotStored(f"{path}: {error}") from error
