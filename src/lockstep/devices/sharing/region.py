"""A share's files, as the node's agent uses them.

The agent writes what it granted, and what the container's processes say it only reads: by single
reads of the file, never by mapping it, so that a container that cuts its file short stops no other
container and not the agent. The values count for accounts alone, and each is checked.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lockstep.devices.sharing.layout import (
    ACCOUNT_SIZE,
    CARDS,
    GRANTED_SIZE,
    HEAD_SIZE,
    MAGIC,
    SLOT_SIZE,
    SLOTS,
    VERSION,
    AccountHead,
    GrantedCard,
    GrantedRecord,
    LeaseRecord,
    SlotRecord,
)

ACCOUNT: Final = ".account"
BELL: Final = ".bell"
KINDS: Final = (".share", ACCOUNT, BELL)
"""The ends of the names of a share's files."""
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_LOCK: Final = "hhqqi4x"
_CHECKED: Final = 64
"""Processes that are looked at in vain in one look for one that waits."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a container has of one card: its UUID, bytes and hundredths; 0 is without limit."""

    uuid: str
    memory: int = 0
    compute: int = 0


def files(share: Path) -> list[Path]:
    """Return the files of a share: what was granted, its account, its bell."""
    return [share.with_suffix(kind) for kind in KINDS]


def create(path: Path, parts: list[Part], owner: int | None = None) -> None:
    """Make the files of a share, in place of any before; the account is the user *owner*'s.

    Raises:
        OSError: when they cannot be written.
        ValueError: when there are more cards than a share can have.
    """
    if len(parts) > CARDS:
        raise ValueError(f"a share has at most {CARDS} cards, not {len(parts)}")
    granted = GrantedRecord(magic=MAGIC, version=VERSION, cards=len(parts))
    for place, part in zip(granted.card, parts, strict=False):
        place.uuid, place.limit, place.compute = part.uuid.encode(), part.memory, part.compute
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    head = bytes(AccountHead(magic=MAGIC, version=VERSION))
    bell = _fresh(path.with_suffix(BELL))
    os.mkfifo(bell, 0o600)
    _place(bell, 0o600, owner)
    account = _fresh(path.with_suffix(ACCOUNT))
    with account.open("xb") as file:
        # All of it is there from the start: no write of a process can fail for want of room.
        os.posix_fallocate(file.fileno(), 0, ACCOUNT_SIZE)
        file.write(head)
    _place(account, 0o600, owner)
    share = _fresh(path)
    share.write_bytes(bytes(granted))
    _place(share, 0o644, None)


def _fresh(path: Path) -> Path:
    found = path.with_name(f".{path.name}.new")
    found.unlink(missing_ok=True)
    return found


def _place(fresh: Path, mode: int, owner: int | None) -> None:
    fresh.chmod(mode)
    if owner is not None:
        os.chown(fresh, owner, -1)
    fresh.replace(fresh.with_name(fresh.name[1:].removesuffix(".new")))


class Region:
    """A share's files, open.

    Raises:
        OSError: when they are not there, or are no share's.
    """

    def __init__(self, path: Path) -> None:
        self._files: list[int] = []
        try:
            self._granted = self._open(path, GRANTED_SIZE)
            self._account = self._open(path.with_suffix(ACCOUNT), 0)
            self.bell = self._open(path.with_suffix(BELL), 0)
            if not stat.S_ISFIFO(os.fstat(self.bell).st_mode):
                raise OSError(f"{path.with_suffix(BELL)} is no pipe")
            self.inode = os.fstat(self._granted).st_ino
            self._map = mmap.mmap(self._granted, GRANTED_SIZE)
        except BaseException:
            self.close()
            raise
        self.record = GrantedRecord.from_buffer_copy(os.pread(self._granted, GRANTED_SIZE, 0))
        """What was granted; the file is written anew from it."""
        if (self.record.magic, self.record.version) != (MAGIC, VERSION):
            self.close()
            raise OSError(f"{path} is no share of version {VERSION}")
        self.cards = min(self.record.cards, CARDS)

    def _open(self, path: Path, size: int) -> int:
        file = os.open(path, os.O_RDWR | _FLAGS)
        self._files.append(file)
        if size and (found := os.fstat(file).st_size) < size:
            raise OSError(f"{path} is no share: {found} bytes")
        return file

    def close(self) -> None:
        """Let go of the files."""
        while self._files:
            os.close(self._files.pop())

    def __del__(self) -> None:
        self.close()

    # --- what was granted ---

    def uuids(self) -> list[str]:
        """Return the cards of the share."""
        return [self.record.card[i].uuid.decode("ascii", "replace") for i in range(self.cards)]

    def parts(self) -> list[Part]:
        """Return what was granted."""
        return [
            Part(uuid, self.record.card[i].limit, min(100, self.record.card[i].compute))
            for i, uuid in enumerate(self.uuids())
        ]

    def limit(self, parts: Iterable[Part]) -> None:
        """Write what is granted of each card."""
        for number, (card, part) in enumerate(zip(self.record.card, parts, strict=False)):
            if (card.limit, card.compute) != (part.memory, part.compute):
                card.limit, card.compute = part.memory, part.compute
                self._store(number, "limit", 12)

    def write(self, card: int, lease: Mapping[str, int]) -> None:
        """Publish a lease of a card; one that is read meanwhile stays whole."""
        record = self.record.card[card]
        which = (record.sequence + 1) & 1
        place = record.leases[which]
        for name, value in lease.items():
            setattr(place, name, value)
        size = ctypes.sizeof(LeaseRecord)
        self._store(card, "leases", size, which * size)
        record.sequence = (record.sequence + 1) & 0xFFFFFFFF
        self._store(card, "sequence", 4)

    def word(self) -> ctypes.c_uint32:
        """Return the word that the container's processes wait on, after it was changed."""
        self.record.wake = (self.record.wake + 1) & 0xFFFFFFFF
        at = GrantedRecord.wake.offset
        os.pwrite(self._granted, struct.pack("I", self.record.wake), at)
        return ctypes.c_uint32.from_buffer(self._map, at)

    def _store(self, card: int, field: str, size: int, beyond: int = 0) -> None:
        start = GrantedRecord.card.offset + card * ctypes.sizeof(GrantedCard)
        at = start + getattr(GrantedCard, field).offset + beyond
        os.pwrite(self._granted, bytes(self.record)[at : at + size], at)

    # --- what its processes say ---

    def account(self) -> AccountHead:
        """Return what the container's processes say of its cards, as it is now."""
        text = os.pread(self._account, HEAD_SIZE, 0)
        return AccountHead.from_buffer_copy(text.ljust(HEAD_SIZE, b"\0"))

    def mend(self) -> None:
        """Give the account its size again, if a container made it longer or shorter."""
        if os.fstat(self._account).st_size != ACCOUNT_SIZE:
            os.truncate(self._account, ACCOUNT_SIZE)

    def drain(self) -> int:
        """Return how often the bell was rung since the last time, up to 4,096."""
        try:
            return len(os.read(self.bell, 4096))
        except BlockingIOError:
            return 0

    def wants(self) -> bool:
        """Tell whether a living process waits at the gate, or has work on a card."""
        checked = 0
        for number, one in self._slots():
            if one.pid > 0 and (any(one.waiting) or any(one.flying)):
                if self._holder(number) is not None:
                    return True
                checked += 1
                if checked >= _CHECKED:
                    break
        return False

    def waiting(self, card: int) -> int:
        """Return how many threads of living processes wait at the gate of a card."""
        return sum(int(one.waiting[card]) for _, one in self._living())

    def beside(self, card: int) -> int:
        """Return the bytes that the container's processes hold beside what they allocated."""
        record = self.record.card[card]
        found: int = record.leases[record.sequence & 1].beside
        return found

    def used(self, card: int) -> int:
        """Return the bytes of a card that living processes of the container hold."""
        return self.beside(card) + sum(int(one.used[card]) for _, one in self._living())

    def processes(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return what living processes allocated of each card, by number and slot.

        The numbers are this process's: the kernel tells them, and not the container. 0 is one that
        cannot be seen from here.
        """
        return {
            (self._holder(number) or 0, number): tuple(one.used[: self.cards])
            for number, one in self._living()
        }

    def _living(self) -> Iterator[tuple[int, SlotRecord]]:
        for number, one in self._slots():
            if one.pid > 0 and self._holder(number) is not None:
                yield number, one

    def _slots(self) -> Iterator[tuple[int, SlotRecord]]:
        count = min(self.account().slots, SLOTS)
        text = os.pread(self._account, count * SLOT_SIZE, HEAD_SIZE)
        for number in range(len(text) // SLOT_SIZE):
            yield number, SlotRecord.from_buffer_copy(text, number * SLOT_SIZE)

    def _holder(self, slot: int) -> int | None:
        """Return the process that holds the lock of a slot, as this one numbers it."""
        ask = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, HEAD_SIZE + slot * SLOT_SIZE, 1, 0)
        kind, _, _, _, pid = struct.unpack(
            _LOCK, fcntl.fcntl(self._account, fcntl.F_OFD_GETLK, ask)
        )
        return None if kind == fcntl.F_UNLCK else int(max(0, pid))
