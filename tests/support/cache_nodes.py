"""Nodes with a cache, the objects they read, and an API server's client."""

from __future__ import annotations

import hashlib
from pathlib import Path

MIB = 1 << 20


def made(count: int, size: int, seed: int = 1) -> dict[str, bytes]:
    return {f"d{index % 7}/{index:04}": drawn(size, seed, index) for index in range(count)}


def drawn(size: int, *seed: int) -> bytes:
    """Return bytes that look random and are the same each time."""
    return hashlib.shake_128(repr(seed).encode()).digest(size)


def digest(root: Path) -> dict[str, str]:
    """Read everything below *root*."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def expected(files: dict[str, bytes]) -> dict[str, str]:
    return {key: hashlib.sha256(data).hexdigest() for key, data in files.items()}
