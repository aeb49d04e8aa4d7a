"""Reads a kernel log as it grows: /dev/kmsg, or a file with lines of that kind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.keys.files import BOOT_ID

KMSG: Final = Path("/dev/kmsg")
_RECORD: Final = 16 << 10
_CHUNK: Final = 1 << 20
LONGEST_LINE: Final = 64 << 10
"""Bytes of a line that is not ended; more than that are dropped."""


@dataclass
class KernelMessages:
    """The ring buffer of the kernel. ``position`` is ``kmsg:BOOT:SEQUENCE``."""

    path: Path = KMSG
    position: str = ""

    def __post_init__(self) -> None:
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._boot = BOOT_ID.read_text().strip()
        self._skip_to = -1
        kind, _, rest = self.position.partition(":")
        boot, _, number = rest.partition(":")
        if kind == "kmsg" and boot == self._boot and number.isdecimal():
            self._skip_to = int(number)
        elif not self.position:
            # What was before the first start may have been repaired since.
            os.lseek(self._fd, 0, os.SEEK_END)
            self.position = f"kmsg:{self._boot}:-"

    def lines(self, most: int = 2000) -> Iterator[str]:
        """Return at most so many new lines."""
        for _ in range(most):
            try:
                record = os.read(self._fd, _RECORD)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten before it was read
                    continue
                raise
            head, _, text = record.decode(errors="replace").partition(";")
            number = head.split(",")[1] if head.count(",") > 1 else ""
            if number.isdecimal() and int(number) > self._skip_to:
                self.position = f"kmsg:{self._boot}:{number}"
                yield text.partition("\n")[0]

    def close(self) -> None:
        """Let go of the device."""
        os.close(self._fd)


@dataclass
class LogFile:
    """A file that grows. ``position`` is ``file:INODE:OFFSET``; one that was replaced is new."""

    path: Path
    position: str = ""

    def lines(self) -> Iterator[str]:
        """Return the lines that were ended since the last time, of at most a mebibyte."""
        try:
            with self.path.open("rb") as file:
                yield from self._read(file.fileno())
        except FileNotFoundError:
            return

    def _read(self, fd: int) -> Iterator[str]:
        facts = os.fstat(fd)
        offset = self._offset(facts)
        data = os.pread(fd, _CHUNK, offset)
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= LONGEST_LINE:
            end = len(data)
        self.position = f"file:{facts.st_ino}:{offset + end}"
        yield from data[:end].decode(errors="replace").splitlines()

    def _offset(self, facts: os.stat_result) -> int:
        parts = self.position.split(":")
        if len(parts) != 3 or parts[1] != str(facts.st_ino) or not parts[2].isdecimal():
            return 0
        return int(parts[2]) if int(parts[2]) <= facts.st_size else 0

    def close(self) -> None:
        """Nothing is kept open."""


Source = KernelMessages | LogFile


def opened(path: Path, position: str) -> Source:
    """Return a log at the place up to where it was read.

    Raises:
        OSError: when it may not be read.
    """
    if path == KMSG:
        return KernelMessages(path, position)
    return LogFile(path, position)


def readable() -> Path | None:
    """Return the kernel's messages, where they may be read."""
    return KMSG if os.access(KMSG, os.R_OK) else None
