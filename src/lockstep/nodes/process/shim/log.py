"""The container's log."""

from __future__ import annotations

import contextlib
import os
import time

LONGEST_PIECE = 16384


class Log:
    """Lines with time, stream and a mark for partial ones, in files rotated by size.

    The format is that of the container runtimes, so tools that read theirs read ours.
    """

    def __init__(self, path: str, limit: int, keep: int) -> None:
        self.path, self.limit, self.keep = path, limit, keep
        self.pending = {"stdout": b"", "stderr": b""}
        self.open()

    def open(self) -> None:
        """Open the newest file and learn how long it is."""
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self.fd = os.open(self.path, flags, 0o600)
        self.size = os.fstat(self.fd).st_size

    def add(self, stream: str, data: bytes) -> None:
        """Write the lines of *data*, and keep what has no end yet."""
        *lines, rest = (self.pending[stream] + data).split(b"\n")
        head = self.head(stream)
        pieces = [head + b"F " + line + b"\n" for line in lines]
        while len(rest) >= LONGEST_PIECE:
            pieces.append(head + b"P " + rest[:LONGEST_PIECE] + b"\n")
            rest = rest[LONGEST_PIECE:]
        self.pending[stream] = rest
        self.write(b"".join(pieces))

    def close(self) -> None:
        """Write what never got an end of line."""
        for stream, rest in self.pending.items():
            if rest:
                self.write(self.head(stream) + b"P " + rest + b"\n")
        os.close(self.fd)

    @staticmethod
    def head(stream: str) -> bytes:
        """Return what stands before a line of *stream* written now."""
        now = time.time_ns()
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
        return f"{text}.{now % 10**9:09d}Z {stream} ".encode()

    def write(self, data: bytes) -> None:
        """Append *data*, in a new file when the present one is full."""
        if self.size and self.size + len(data) > self.limit:
            self.rotate()
        while data:
            written = os.write(self.fd, data)
            self.size += written
            data = data[written:]

    def rotate(self) -> None:
        """Move ``log`` to ``log.1``, ``log.1`` to ``log.2`` and so on; the oldest falls away."""
        os.close(self.fd)
        for number in range(self.keep - 1, 0, -1):
            older = f"{self.path}.{number - 1}" if number > 1 else self.path
            with contextlib.suppress(FileNotFoundError):
                os.replace(older, f"{self.path}.{number}")
        self.open()
