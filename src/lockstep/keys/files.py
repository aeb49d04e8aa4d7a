"""Files that only their owner may read, written so that a crash leaves the old or the new one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def private_directory(path: Path) -> None:
    """Create a directory (and its parents) that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file as a whole, with mode 0600 from its first byte on and on disk at return.

    Raises:
        OSError: The directory cannot be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


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
