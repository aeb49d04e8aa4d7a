"""Which user of this machine is at the other end of a connection over loopback."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lockstep.http.message import Peer

TABLE: Final = Path("/proc/net/tcp")
_LOCAL, _REMOTE, _USER = 1, 2, 7
"""Columns of a connection in the kernel's table."""

Address = tuple[str, int]


def owner(peer: Address, own: Address, table: Iterable[str] | None = None) -> int | None:
    """Return the uid that holds the other end of a connection from *peer* to *own* (IPv4).

    It is None where the kernel's table does not show it: the peer is on another machine or in
    another network namespace.
    """
    if table is None:
        try:
            table = TABLE.read_text().splitlines()
        except OSError:
            return None
    wanted = [_shown(peer), _shown(own)]
    for line in table:
        fields = line.split()
        if fields[_LOCAL : _REMOTE + 1] == wanted:
            return int(fields[_USER])
    return None


def is_trusted(peer: Peer) -> bool:
    """Tell whether *peer*, over loopback, may read what this process may: its own user, or root."""
    other, own = peer.ends
    uid = owner(other, own) if other and own else None
    return uid is not None and uid in (0, os.geteuid())


def _shown(address: Address) -> str:
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"
