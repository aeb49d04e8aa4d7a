"""A directory as parts, each named by its digest: one changed file changes one part.

The parts, in order, are one tar archive. Where a part ends depends on paths and sizes alone.
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Iterator
from typing import Final

from lockstep.api.code import PART
from lockstep.kube.code.tree import File, Tree, content

_SMALLEST: Final = 384 << 10
"""Bytes from which on a part may end; its last file's path decides."""
_ONE_IN: Final = 8
_MODIFIED: Final = 946684800
"""The time of all files, 2000-01-01: the same content is the same part."""


def name_of(data: bytes) -> str:
    """Return the name of the ConfigMap that holds *data*."""
    return f"code-{hashlib.sha256(data).hexdigest()[:40]}"


def compressed(data: bytes) -> bytes:
    """Return a part as it is kept: a gzip file without time and name."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def parts(tree: Tree) -> tuple[str, list[bytes]]:
    """Return the digest of a directory, and its parts in order.

    Raises:
        BadCode: when a file cannot be read.
    """
    whole = hashlib.sha256()
    found = list(_parts(tree, whole))
    return f"sha256:{whole.hexdigest()}", found


def _parts(tree: Tree, whole: hashlib._Hash) -> Iterator[bytes]:
    buffer = b""
    for file in tree.files:
        block = _block(tree, file)
        whole.update(hashlib.sha256(block).digest())
        if buffer and len(buffer) + len(block) > PART:
            yield buffer
            buffer = b""
        large = len(block) > PART
        while len(block) > PART:
            yield block[:PART]
            block = block[PART:]
        buffer += block
        name = file.path.encode("utf-8", "surrogateescape")
        if large or (len(buffer) >= _SMALLEST and zlib.crc32(name) % _ONE_IN == 0):
            yield buffer
            buffer = b""
    if buffer:
        yield buffer
    yield bytes(2 * tarfile.BLOCKSIZE)


def _block(tree: Tree, file: File) -> bytes:
    """Return a file as its place in the archive."""
    info = tarfile.TarInfo(file.path)
    info.mode, info.mtime = 0o755 if file.executable else 0o644, _MODIFIED
    data = b""
    if file.link:
        info.type, info.linkname = tarfile.SYMTYPE, file.link
    else:
        data = content(tree.root, file.path)
        info.size = len(data)
    head = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    return head + data + bytes(-len(data) % tarfile.BLOCKSIZE)
