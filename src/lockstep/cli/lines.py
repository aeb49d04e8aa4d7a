"""Output of several pods in one stream, a line at a time."""

from __future__ import annotations


class Prefixed:
    """Cuts chunks of bytes into lines and puts a prefix before each."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines that *chunk* completes; what is incomplete is kept."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return b"".join(self._prefix + line + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return the last line, if it did not end with a line break."""
        rest, self._rest = self._rest, b""
        return self._prefix + rest + b"\n" if rest else b""
