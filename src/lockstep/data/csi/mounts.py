"""Bind mounts of the node, read-only: what a pod's volume is made of."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Final

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MNT_DETACH: Final = 2
MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_libc = ctypes.CDLL(None, use_errno=True)


def show(source: Path, target: Path) -> None:
    """Show the directory *source* at *target*, read-only; one that is shown already stays.

    Raises:
        OSError: when the node does not let it.
    """
    if _mounted(target):
        return
    target.mkdir(parents=True, exist_ok=True, mode=0o750)
    _mount(source, target, MS_BIND)
    try:
        _mount(source, target, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    except OSError:
        hide(target)
        raise


def hide(target: Path) -> None:
    """Take away what is shown at *target*, and its directory; one that is gone is as good.

    Raises:
        OSError: when the node does not let it.
    """
    while _mounted(target):
        if _libc.umount2(os.fsencode(target), MNT_DETACH) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), str(target))
    if os.path.lexists(target):
        target.rmdir()


def _mounted(target: Path) -> bool:
    """Tell whether something is mounted at *target*, also of the file system that it is on.

    The kernel is asked: a view whose holder has ended cannot even be looked at.
    """
    place = str(target)
    lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    return any(_ESCAPED.sub(_character, line.split(" ")[4]) == place for line in lines)


def _character(found: re.Match[str]) -> str:
    return chr(int(found.group(1), 8))


def _mount(source: Path, target: Path, flags: int) -> None:
    if _libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(target))
