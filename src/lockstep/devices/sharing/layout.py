"""The files of a share, as their bytes are: the same as ``native/front/share.h``."""

from __future__ import annotations

import ctypes
from typing import Final

MAGIC: Final = 0x4C535348
VERSION: Final = 2
CARDS: Final = 16
SLOTS: Final = 1024
OPEN: Final = 1
"""Flag of a lease without an end."""
PAUSED: Final = 2

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64


class LeaseRecord(ctypes.Structure):
    """When the share may use a card, in nanoseconds of the monotonic clock."""

    _fields_ = tuple(
        (name, _u64)
        for name in ("start", "period", "offset", "length", "until", "flags", "epoch", "beside")
    )


class GrantedCard(ctypes.Structure):
    """What was granted of one card."""

    _fields_ = (
        ("uuid", ctypes.c_char * 48),
        ("limit", _u64),
        ("compute", _u32),
        ("sequence", _u32),
        ("leases", LeaseRecord * 2),
    )


class GrantedRecord(ctypes.Structure):
    """The file that the agent writes and the container reads."""

    _fields_ = (
        *((name, _u32) for name in ("magic", "version", "cards", "wake")),
        ("card", GrantedCard * CARDS),
    )


class Lock(ctypes.Structure):
    """The lock of the container's processes; the agent never takes it."""

    _fields_ = (("ready", _u32), ("unused", _u32), ("mutex", ctypes.c_uint8 * 48))


COUNTERS: Final = (
    "busy",
    "covered",
    "throttled",
    "launches",
    "refused",
    "unheld",
    "passed",
    "longest",
)


class AccountCard(ctypes.Structure):
    """What the container's processes say of one card."""

    _fields_ = tuple((name, _u64) for name in COUNTERS)


class SlotRecord(ctypes.Structure):
    """One process of the container; it lives while it holds a lock on its first byte."""

    _fields_ = (
        ("pid", ctypes.c_int32),
        ("waiting", _u32 * CARDS),
        ("unused", _u32),
        ("flying", _u64 * CARDS),
        ("used", _u64 * CARDS),
    )


class AccountHead(ctypes.Structure):
    """The account up to its processes."""

    _fields_ = (
        ("magic", _u32),
        ("version", _u32),
        ("lock", Lock),
        ("unknown", _u64),
        ("fallback", _u64),
        ("stranger", ctypes.c_char * 64),
        ("slots", _u32),
        ("unused", _u32),
        ("card", AccountCard * CARDS),
    )


GRANTED_SIZE: Final = ctypes.sizeof(GrantedRecord)
HEAD_SIZE: Final = ctypes.sizeof(AccountHead)
SLOT_SIZE: Final = ctypes.sizeof(SlotRecord)
ACCOUNT_SIZE: Final = HEAD_SIZE + SLOTS * SLOT_SIZE
