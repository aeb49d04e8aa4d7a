"""Which node owns a chunk: it alone asks the store for it, and the others ask that node."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def owner(version: str, chunk: int, nodes: Iterable[str]) -> str:
    """Return the owner of *chunk* among *nodes* (rendezvous hashing).

    All nodes find the same one. When a node goes, its chunks alone move, each to another node.

    Raises:
        ValueError: when there is no node.
    """
    key = f"{version}/{chunk}/".encode()
    return max(nodes, key=lambda node: (_weight(key, node), node))


def _weight(key: bytes, node: str) -> bytes:
    return hashlib.blake2b(key + node.encode(), digest_size=8).digest()
