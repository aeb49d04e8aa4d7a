"""Lines of logs: each with its pod, and none lost or doubled where a stream breaks."""

from __future__ import annotations


class Cursor:
    """Takes lines that begin with their times, and lets each pass once.

    Times are in order. After a break the log is asked for from the last time on, so that lines of
    that very time come again: as many as were printed are left out.
    """

    def __init__(self, *, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._rest = b""
        self._skip = 0
        self._same = 0
        self.time = b""
        """That of the last line printed; empty before the first."""

    def reconnect(self) -> None:
        """Begin again at the last time; what was incomplete comes again as a whole."""
        self._rest = b""
        self._skip = self._same

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines that *chunk* completes and that have not been printed."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return b"".join(self._new(line) for line in lines)

    def _new(self, line: bytes) -> bytes:
        time, _, text = line.partition(b" ")
        if time < self.time:
            return b""
        if time == self.time:
            if self._skip:
                self._skip -= 1
                return b""
            self._same += 1
        else:
            self.time, self._same, self._skip = time, 1, 0
        return (line if self._timestamps else text) + b"\n"


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
