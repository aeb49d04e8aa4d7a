"""An own address for each pod: of loopback, or of the subnet that the machine has for its pods."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network
from typing import Final

LOOPBACK: Final = "127.0.0.0/8"
# 127.0.0.0/16 stays with the host: 127.0.0.1 and the resolvers that listen nearby.
_KEPT: Final = 1 << 16


class NoAddress(Exception):
    """Every address of the pods' subnet is taken."""


def choose(uid: str, taken: Collection[str], pods: IPv4Network) -> str:
    """Return the address of the pod *uid*: the same every time unless it is taken.

    Raises:
        NoAddress: when none is free.
    """
    first = _KEPT if pods.is_loopback else 0
    size = pods.num_addresses - first
    start = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") % size
    for step in range(min(size, len(taken) * 4 + 1024)):
        number = int(pods.network_address) + first + (start + step) % size
        if number % 256 in (0, 255):
            continue
        address = str(IPv4Address(number))
        if address not in taken:
            return address
    raise NoAddress(f"no address of {pods} is free")
