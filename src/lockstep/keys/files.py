"""Files that are replaced as a whole: a crash, or a power cut, leaves the old or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
"""Names this start of the machine: what was not on the disk may have gone with the one before."""


def private_directory(path: Path) -> None:
    """Create a directory (and its parents) that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file that only its owner may read, see :func:`replace_file`."""
    replace_file(path, content, mode=0o600)


def replace_file(path: Path, content: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Replace a file as a whole; it has *mode*, less the umask, from its first byte on.

    It is on the disk at return. Where it is not *durable*, that is left to the system: a power cut
    may then leave an empty file, and its reader has to take that for none.

    Raises:
        OSError: The directory cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        settle(path.parent)


def settle(path: Path) -> None:
    """Return once a file's bytes, or a directory's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_private(path: Path, line: bytes, *, most: int) -> None:
    """Append a line to a file of mode 0600; at *most* bytes that file becomes ``NAME.old``.

    Raises:
        OSError: The directory cannot be written.
    """
    private_directory(path.parent)
    if path.exists() and path.stat().st_size > most:
        path.replace(path.with_name(f"{path.name}.old"))
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, line + b"\n")
    finally:
        os.close(handle)
