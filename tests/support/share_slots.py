"""A process of a container, as it stands in the account of its share."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from lockstep.devices.sharing.layout import HEAD_SIZE, SLOT_SIZE, AccountHead, SlotRecord
from lockstep.devices.sharing.region import ACCOUNT


def occupy(
    share: Path, *, slot: int = 0, used: int = 0, waiting: int = 0, flying: int = 0, pid: int = 7
) -> int:
    """Take a slot of a share's account; the process lives until the file returned is closed."""
    file = os.open(share.with_suffix(ACCOUNT), os.O_RDWR)
    at = HEAD_SIZE + slot * SLOT_SIZE
    record = SlotRecord(pid=pid)
    record.used[0], record.waiting[0], record.flying[0] = used, waiting, flying
    os.pwrite(file, bytes(record), at)
    os.pwrite(file, struct.pack("I", slot + 1), AccountHead.slots.offset)
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
    return file
