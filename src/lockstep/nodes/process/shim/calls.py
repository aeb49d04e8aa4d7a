"""System calls that the standard library lacks, with errors that say what was being done."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
# Flags that a user namespace may not clear when it mounts again what the host mounted.
LOCKED_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_RDONLY

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """A step of setting up the container failed; the message says which and why."""


def check(result: int, doing: str) -> None:
    """Turn a failed system call into an error that says what was being done.

    Raises:
        Refused: when *result* is negative.
    """
    if result < 0:
        raise Refused(f"{doing}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, flags: int, kind: str = "none", data: str = "") -> None:
    """Mount *source* on *target*.

    Raises:
        Refused: when the kernel says no.
    """
    done = libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    check(done, f"mount {source} on {target}")


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Let *source* appear at *target*."""
    mount(source, target, MS_BIND | MS_REC)
    if read_only:
        kept = os.statvfs(target).f_flag & LOCKED_FLAGS
        mount(source, target, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def put(path: str, text: str) -> None:
    """Write *text* into a file of the kernel in one call."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
