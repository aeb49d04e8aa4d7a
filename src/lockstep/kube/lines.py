"""Splitting a stream of bytes into lines, however it is cut into chunks."""

from __future__ import annotations


class LineSplitter:
    """Takes chunks and gives back the lines that they complete."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes, without their ends and without empty ones."""
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        if not rest:
            return []
        # A line may come in many chunks; joining them once keeps long lines linear.
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]]
        return [line for line in lines if line]
