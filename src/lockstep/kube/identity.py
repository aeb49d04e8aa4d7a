"""Who a candidate is, and whether a candidate of this machine is gone.

A leader that was killed cannot give its lease back, and its successor would wait for the lease to
run out. On the same machine there is no need to: the kernel knows that the process is gone.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from pathlib import Path

_OWN = re.compile(r".+_(?P<boot>[0-9a-f]{8})-(?P<space>\d+)-(?P<pid>\d+)-(?P<start>\d+)_[0-9a-f]+")


def own_identity() -> str:
    """Return a name that no other candidate, here or elsewhere, has or will have.

    It tells the boot, the PID namespace, the PID and the process's start, where Linux says them.
    """
    host, pid, chance = socket.gethostname(), os.getpid(), secrets.token_hex(3)
    try:
        return f"{host}_{_boot()}-{_pid_namespace()}-{pid}-{_start(pid)}_{chance}"
    except OSError:
        return f"{host}_{pid}_{chance}"


def is_gone(identity: str) -> bool:
    """Return whether *identity* names a process of this kernel and PID namespace that has ended.

    False also where that cannot be known: another machine, another namespace, another format.
    """
    match = _OWN.fullmatch(identity)
    try:
        if match is None or match["boot"] != _boot() or int(match["space"]) != _pid_namespace():
            return False
    except OSError:
        return False
    try:
        return _start(int(match["pid"])) != int(match["start"])
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]


def _pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _start(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; a zombie has ended."""
    try:
        # The name in parentheses may hold anything, spaces and parentheses too.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except ProcessLookupError:
        raise FileNotFoundError(pid) from None
    if fields[0] in ("Z", "X"):
        raise FileNotFoundError(pid)
    return int(fields[19])
