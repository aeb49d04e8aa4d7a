"""Who runs on a data directory: at most one ``lockstep up``."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from lockstep.cli.failure import CommandFailed

FILE = "up.lock"
LEFTOVERS_END = 25.0
"""Seconds that the children of a supervisor that was killed may take to end."""


@dataclass(frozen=True, slots=True)
class Lock:
    """The hold on a data directory; children inherit *fd*, so it lasts until the last has ended."""

    fd: int

    def release(self) -> None:
        """Let go of this process's share of the hold."""
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


def take(data: Path) -> Lock:
    """Take the data directory for this process.

    Raises:
        CommandFailed: when another ``lockstep up`` has it, or it cannot be used.
    """
    fd = _opened(data)
    end = time.monotonic() + LEFTOVERS_END
    while not _try(fd, fcntl.LOCK_EX):
        pid = _pid(fd)
        if (pid is not None and _alive(pid)) or time.monotonic() > end:
            os.close(fd)
            raise CommandFailed(
                f"lockstep up already runs on {data}" + (f" (process {pid})" if pid else ""),
                f"stop it with `lockstep down --data {data}`, or choose another --data directory",
            )
        time.sleep(0.05)
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return Lock(fd)


def require_usable(data: Path) -> None:
    """Require that *data* is, or can become, a directory to write to.

    Raises:
        CommandFailed: when it cannot.
    """
    os.close(_opened(data))


def _opened(data: Path) -> int:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(data / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandFailed(
            f"--data {data} cannot be used as a directory: {error.strerror}",
            "choose a directory that you may write to, such as --data ~/lockstep",
        ) from None


def holder(data: Path) -> int | None:
    """Return the process that holds the data directory, if one does."""
    try:
        fd = os.open(data / FILE, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return None if _try(fd, fcntl.LOCK_SH) else _pid(fd)
    finally:
        os.close(fd)


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
