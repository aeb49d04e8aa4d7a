"""One-time links: they exchange what lies in a private directory of this machine for a session.

Only the user that the console runs as may write the directory, so nothing secret travels:
the link holds a code, and a file named by the code's hash says which kubeconfig it stands for.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from pathlib import Path

import msgspec

from lockstep.keys.files import replace_file, write_private

VALID = 120.0
"""Seconds for which a link may be used."""
ADDRESS = "address"
CODE_LENGTH = 43


class Grant(msgspec.Struct, frozen=True):
    """Whose credentials a link stands for."""

    kubeconfig: str
    context: str = ""


def write(state: Path, grant: Grant) -> str:
    """Allow one sign-in and return its code.

    Raises:
        OSError: when the directory cannot be written.
    """
    directory = _directory(state)
    code = secrets.token_urlsafe(32)
    write_private(_file(directory, code), msgspec.json.encode(grant))
    return code


def redeem(state: Path, code: str) -> Grant | None:
    """Return what a code stands for, once; None for one that is unknown, used or too old."""
    if len(code) != CODE_LENGTH:
        return None
    directory = _directory(state)
    taken = directory / f".{secrets.token_hex(8)}"
    try:
        # Of two that come at once, one renames it.
        _file(directory, code).rename(taken)
        written = taken.stat().st_mtime
        content = taken.read_bytes()
    except OSError:
        return None
    finally:
        taken.unlink(missing_ok=True)
    if time.time() - written > VALID:
        return None
    try:
        return msgspec.json.decode(content, type=Grant)
    except msgspec.DecodeError:
        return None


def sweep(state: Path) -> None:
    """Remove links that were not used."""
    for file in _directory(state).iterdir():
        try:
            if time.time() - file.stat().st_mtime > VALID:
                file.unlink(missing_ok=True)
        except FileNotFoundError:
            continue


def publish(state: Path, address: str) -> None:
    """Say in the directory where the console listens."""
    _directory(state)
    replace_file(state / ADDRESS, address.encode(), durable=False)


def address(state: Path) -> str:
    """Return where the console of a directory listens; empty where none does."""
    try:
        return (state / ADDRESS).read_text().strip()
    except OSError:
        return ""


def url(address: str, code: str, path: str = "/") -> str:
    """Return the link; what is behind ``#`` is never sent, and so stands in no log."""
    return f"{address}{path}#code={code}"


def _directory(state: Path) -> Path:
    directory = state / "links"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _file(directory: Path, code: str) -> Path:
    return directory / hashlib.sha256(code.encode()).hexdigest()
