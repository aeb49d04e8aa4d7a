"""An own loopback address for each pod."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

# 127.0.0.0/16 stays with the host: 127.0.0.1 and the resolvers that listen nearby.
_FIRST = 1 << 16
_SIZE = (1 << 24) - _FIRST


class NoAddress(Exception):
    """Every loopback address is taken."""


def choose(uid: str, taken: Collection[str]) -> str:
    """Return the address of the pod *uid*: the same every time unless it is taken.

    Raises:
        NoAddress: when none is free.
    """
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % _SIZE
    for step in range(min(_SIZE, len(taken) * 4 + 1024)):
        number = _FIRST + (start + step) % _SIZE
        if number % 256 in (0, 255):
            continue
        address = f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        if address not in taken:
            return address
    raise NoAddress("no loopback address is free")
