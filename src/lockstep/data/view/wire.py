"""The kernel's FUSE protocol, as far as a tree that is only read needs it (7.40, Linux 6.9)."""

from __future__ import annotations

import struct
from typing import Final

IN: Final = struct.Struct("<IIQQIIIHH")
"""len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding."""
OUT: Final = struct.Struct("<IiQ")
"""len, error, unique."""
INIT_IN: Final = struct.Struct("<IIIII")
INIT_OUT: Final = struct.Struct("<IIIIHHIIHHII24x")
ATTR: Final = struct.Struct("<6Q10I")
ENTRY: Final = struct.Struct("<4Q2I")
ATTR_OUT: Final = struct.Struct("<QII")
OPEN_OUT: Final = struct.Struct("<QIi")
READ_IN: Final = struct.Struct("<QQIIQII")
RELEASE_IN: Final = struct.Struct("<QIIQ")
DIRENT: Final = struct.Struct("<QQII")
STATFS_OUT: Final = struct.Struct("<5Q4I24x")
XATTR_IN: Final = struct.Struct("<II")

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ = 1, 2, 3, 4, 14, 15
STATFS, RELEASE, GETXATTR, LISTXATTR, FLUSH, INIT = 17, 18, 22, 23, 25, 26
OPENDIR, READDIR, RELEASEDIR, ACCESS, INTERRUPT = 27, 28, 29, 34, 36
DESTROY, BATCH_FORGET, READDIRPLUS, LSEEK = 38, 42, 44, 46
SILENT: Final = frozenset((FORGET, BATCH_FORGET, INTERRUPT))
"""Requests that take no answer."""
CHANGES: Final = frozenset((4, 6, 8, 9, 10, 11, 12, 13, 16, 21, 24, 35, 43, 45, 51))
"""Requests that would change the tree."""

ASYNC_READ, ASYNC_DIO, PARALLEL_DIROPS = 1 << 0, 1 << 15, 1 << 18
DO_READDIRPLUS, READDIRPLUS_AUTO, MAX_PAGES = 1 << 13, 1 << 14, 1 << 22
NO_OPENDIR, CACHE_SYMLINKS, INIT_EXT = 1 << 24, 1 << 23, 1 << 30
PASSTHROUGH, HAS_RESEND = 1 << 37, 1 << 39
UNIQUE_RESEND: Final = 1 << 63
"""On a request that the kernel sends once more."""
NOTIFY_RESEND: Final = 7

FOPEN_KEEP_CACHE, FOPEN_CACHE_DIR, FOPEN_NOFLUSH, FOPEN_PASSTHROUGH = 2, 8, 32, 128

READ_MOST: Final = 1 << 20
"""Bytes that one request asks for at most."""
REQUEST_MOST: Final = 1 << 17
"""Bytes of the longest request; the tree is only read, so none carries data."""

_MAGIC: Final = 229
BACKING_OPEN: Final = (1 << 30) | (16 << 16) | (_MAGIC << 8) | 1
BACKING_CLOSE: Final = (1 << 30) | (4 << 16) | (_MAGIC << 8) | 2
BACKING_MAP: Final = struct.Struct("<iIQ")
