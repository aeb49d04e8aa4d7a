"""How each file of a view is open, kept where the next life of the cache finds it.

The kernel holds a file open in one way at a time: by itself from the real file (passthrough), or
through the cache. A cache that took over from one that was killed must go on in the same way.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np


class Opens:
    """For each file the kernel's number of the real file (0: read through the cache) and opens.

    A count may be too high after a kill, never too low: it is raised before an open is answered
    and lowered after a release is.
    """

    def __init__(self, path: Path, files: int) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, max(8, 8 * files))
        finally:
            os.close(fd)
        self._state = np.memmap(path, np.int32, "r+", shape=(max(1, files), 2))

    def get(self, index: int) -> tuple[int, int]:
        """Return the kernel's number of the real file, and how often the file is open."""
        backing, count = self._state[index].tolist()
        return backing, count

    def put(self, index: int, backing: int, count: int) -> None:
        """Note both."""
        self._state[index] = backing, count

    def total(self) -> int:
        """Return how many opens there are."""
        return int(self._state[:, 1].sum())
