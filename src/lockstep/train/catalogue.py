"""Checkpoints of one job in a directory that outlives its pods: which are whole, and where.

A checkpoint is a directory that counts once ``index.json`` names it. That is replaced by a rename,
after the manifest of the checkpoint, which is written after all receipts of its ranks. So it counts
or does not, whenever anybody is killed. Nothing is found by listing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

KEPT = 3
"""Checkpoints: those of the last two saves, and one more where a pod is told to end."""
INDEX = "index.json"
MANIFEST = "manifest.json"
_LONGEST = 1 << 30


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


class Catalogue:
    """The checkpoints of one job."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def entries(self) -> list[Entry]:
        """Return the whole checkpoints, the newest first; none where that cannot be read."""
        try:
            found = [Entry(**one) for one in json.loads(_text(self.directory / INDEX))]
            good = [one for one in found if os.sep not in one.directory]
            return sorted(good, key=lambda one: one.step, reverse=True)
        except (OSError, ValueError, TypeError):
            return []

    def add(self, entry: Entry) -> None:
        """Let *entry* count, and drop the oldest beyond those that are kept.

        Raises:
            OSError: when that cannot be written.
        """
        with self._alone():
            others = [one for one in self.entries() if one.step != entry.step]
            ordered = sorted([entry, *others], key=lambda one: one.step, reverse=True)
            kept, gone = ordered[:KEPT], ordered[KEPT:]
            write(self.directory / INDEX, [asdict(one) for one in kept])
        for one in gone:
            shutil.rmtree(self.directory / one.directory, ignore_errors=True)

    def find(self, step: int) -> Path:
        """Return the directory of the checkpoint after *step* steps.

        Raises:
            NotStored: when there is none.
        """
        for one in self.entries():
            if one.step == step:
                return self.directory / one.directory
        raise NotStored(f"{self.directory} has no checkpoint of step {step}")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        # Where the volume knows no locks the worst is a checkpoint that the index forgets.
        fd = os.open(self.directory / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def write(path: Path, content: Any) -> int:
    """Put *content* as JSON at *path*, all of it or nothing; return its checksum."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    data = json.dumps(content, separators=(",", ":")).encode()
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    return zlib.crc32(data)


def write_manifest(directory: Path, content: Json) -> None:
    """Put the manifest of the checkpoint in *directory*, which is whole with it."""
    write(directory / MANIFEST, {"crc": _sum(content), "manifest": content})


def _sum(content: Json) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def receipt_name(rank: int) -> str:
    """Return the name of what *rank* tells of its part of a checkpoint."""
    return f"receipt-{rank:05}.json"


def manifest(directory: Path, step: int) -> Json:
    """Return the manifest of the checkpoint in *directory*.

    Raises:
        NotStored: when it is not whole, of another step, or of another job.
    """
    path = directory / MANIFEST
    try:
        whole = json.loads(_text(path))
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


def receipt(directory: Path, rank: int, checksum: int) -> Json:
    """Return what *rank* told of its part.

    Raises:
        NotStored: when it is not what the manifest says.
    """
    path = directory / receipt_name(rank)
    try:
        text = _text(path)
        if zlib.crc32(text.encode()) != checksum:
            raise NotStored(f"{path}: its bytes are not those that were written")
        found: Json = json.loads(text)
        return found
    except (OSError, ValueError) as error:
        raise NotStored(f"{path}: {error}") from error


def _text(path: Path) -> str:
    with path.open() as file:
        return file.read(_LONGEST)
