"""A log file that never grows beyond its bound."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

LIMIT = 8 * 2**20
KEPT = 3
PRIVATE = 0o600


class LogFile:
    """Lines go in; ``NAME.log`` is kept below *limit* bytes, and *kept* older ones beside it."""

    def __init__(self, path: Path, *, limit: int = LIMIT, kept: int = KEPT) -> None:
        self.path = path
        self._limit = limit
        self._kept = kept
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _opened(path)
        self._size = self._file.tell()

    def write(self, line: bytes) -> None:
        """Append *line*, beginning a new file first when this one is full."""
        if self._size and self._size + len(line) > self._limit:
            self._rotate()
        self._file.write(line)
        self._size += len(line)

    def close(self) -> None:
        """Close the file; nothing may be written afterwards."""
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._kept, 0, -1):
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))
        self._file = _opened(self.path)
        self._size = 0

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


def _opened(path: Path) -> BinaryIO:
    """Open a log to append to, which its user alone reads: it names objects of all namespaces."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    os.fchmod(file, PRIVATE)
    return os.fdopen(file, "ab", buffering=0)


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last *count* lines of the log at *path*; none when there is no such file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 256 * count))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []
