"""The dataset that lies on a node when its power goes."""

from __future__ import annotations

from lockstep.data.core.chunks import CHUNK
from lockstep.data.core.manifest import Found, Manifest, build

SIZES = (5000, 9000, CHUNK + 70_000, 100, 60_000, 300_000)


def manifest() -> Manifest:
    """Return what the dataset holds."""
    found = [Found(f"d/{one}", size, "e", 1.0) for one, size in enumerate(SIZES)]
    return build([("", found)])


def content(index: int, start: int, end: int) -> bytes:
    """Return bytes of a file, which no other file and no hole has."""
    return bytes((index + 1,)) * (end - start)
