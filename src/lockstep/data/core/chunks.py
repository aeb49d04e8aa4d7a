"""Chunks: what is fetched, kept and evicted at once, numbered through all files of a version."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.data.core.manifest import Manifest

CHUNK: Final = 8 << 20
"""Bytes of a chunk; a file that is not larger is one, an empty one too."""
IntArray = npt.NDArray[np.int64]


class Chunks:
    """The chunks of a version: those of a file follow each other."""

    def __init__(self, manifest: Manifest) -> None:
        sizes = (one.size for one in manifest.entries)
        self.sizes: IntArray = np.fromiter(sizes, np.int64, len(manifest.entries))
        """Bytes of each file."""
        self.counts: IntArray = np.maximum(1, -(-self.sizes // CHUNK))
        """Chunks of each file."""
        ends = np.cumsum(self.counts)
        self.firsts: IntArray = ends - self.counts
        """Number of each file's first chunk."""
        self.total = int(ends[-1]) if len(ends) else 0

    def of(self, index: int, start: int, end: int) -> range:
        """Return the chunks that hold the bytes *start* to *end* of the file *index*."""
        first = int(self.firsts[index])
        return range(first + start // CHUNK, first + max(0, end - 1) // CHUNK + 1)

    def all_of(self, index: int) -> range:
        """Return all chunks of the file *index*."""
        first = int(self.firsts[index])
        return range(first, first + int(self.counts[index]))

    def file(self, chunk: int) -> int:
        """Return the file of *chunk*."""
        return int(np.searchsorted(self.firsts, chunk, side="right")) - 1

    def span(self, index: int, chunk: int) -> tuple[int, int]:
        """Return where *chunk* of the file *index* begins and ends in it."""
        start = (chunk - int(self.firsts[index])) * CHUNK
        return start, min(start + CHUNK, int(self.sizes[index]))
