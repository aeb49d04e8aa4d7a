"""A share as a file that the container's processes and the node's agent map.

The same as ``native/front/share.h``. The container can write all of it: what is read here counts
for accounts alone, and what was granted is written anew from what the agent itself keeps.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAGIC: Final = 0x4C535348
VERSION: Final = 1
CARDS: Final = 16
SLOTS: Final = 1024
OPEN: Final = 1
"""Flag of a lease without an end."""
PAUSED: Final = 2

_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64


class Lock(ctypes.Structure):
    """The lock of the container's processes; nobody else takes it."""

    _fields_ = (("ready", _u32), ("unused", _u32), ("mutex", ctypes.c_uint8 * 48))


class LeaseRecord(ctypes.Structure):
    """When the share may use a card, in nanoseconds of the monotonic clock."""

    _fields_ = tuple(
        (name, _u64)
        for name in ("start", "period", "offset", "length", "until", "flags", "epoch", "beside")
    )


class CardRecord(ctypes.Structure):
    """One card of a share: what was granted, then what its processes say."""

    _fields_ = (
        ("uuid", ctypes.c_char * 48),
        ("limit", _u64),
        ("compute", _u32),
        ("sequence", _u32),
        ("leases", LeaseRecord * 2),
        *((name, _u64) for name in ("busy", "tail", "throttled", "overrun", "launches", "refused")),
        ("waiting", _u32),
        ("longest", _u32),
    )


class SlotRecord(ctypes.Structure):
    """One process of the container, and the bytes it holds of each card."""

    _fields_ = (
        ("pid", ctypes.c_int32),
        ("unused", _u32),
        ("start", _u64),
        ("used", _u64 * CARDS),
    )


class ShareRecord(ctypes.Structure):
    """The whole file."""

    _fields_ = (
        *((name, _u32) for name in ("magic", "version", "cards", "wake")),
        ("lock", Lock),
        ("unknown", _u64),
        ("fallback", _u64),
        ("slots", _u32),
        ("unused", _u32),
        ("card", CardRecord * CARDS),
        ("slot", SlotRecord * SLOTS),
    )


SIZE: Final = ctypes.sizeof(ShareRecord)


@dataclass(frozen=True, slots=True)
class Part:
    """What a container has of one card: its UUID, bytes and hundredths; 0 is without limit."""

    uuid: str
    memory: int = 0
    compute: int = 0


def create(path: Path, parts: list[Part], owner: int | None = None) -> None:
    """Make the file of a share, in place of any before, for the user *owner*.

    Raises:
        OSError: when it cannot be written.
        ValueError: when there are more cards than a share can have.
    """
    if len(parts) > CARDS:
        raise ValueError(f"a share has at most {CARDS} cards, not {len(parts)}")
    record = ShareRecord(magic=MAGIC, version=VERSION, cards=len(parts))
    for place, part in zip(record.card, parts, strict=False):
        place.uuid, place.limit, place.compute = part.uuid.encode(), part.memory, part.compute
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(bytes(record))
    fresh.chmod(0o600)
    if owner is not None:
        os.chown(fresh, owner, -1)
    fresh.replace(path)


class Region:
    """A share's file, mapped.

    Processes *elsewhere* have numbers of a PID namespace of their own; all of them count until the
    next one of their container finds which are dead.

    Raises:
        OSError: when there is none, or it is none of a share's.
    """

    def __init__(self, path: Path, *, elsewhere: bool = False) -> None:
        self.elsewhere = elsewhere
        with path.open("r+b") as file:
            about = os.fstat(file.fileno())
            if about.st_size < SIZE:
                raise OSError(f"{path} is no share: {about.st_size} bytes")
            self._map = mmap.mmap(file.fileno(), SIZE)
        self.inode = about.st_ino
        self.record = ShareRecord.from_buffer(self._map)
        if (self.record.magic, self.record.version) != (MAGIC, VERSION):
            raise OSError(f"{path} is no share of version {VERSION}")
        self.cards = min(self.record.cards, CARDS)

    def wake_word(self) -> ctypes.c_uint32:
        """Return the word that the container's processes wait on."""
        return _u32.from_buffer(self._map, ShareRecord.wake.offset)

    def uuids(self) -> list[str]:
        """Return the cards of the share."""
        return [self.record.card[i].uuid.decode("ascii", "replace") for i in range(self.cards)]

    def parts(self) -> list[Part]:
        """Return what was granted, as the file says it."""
        return [
            Part(uuid, self.record.card[i].limit, min(100, self.record.card[i].compute))
            for i, uuid in enumerate(self.uuids())
        ]

    def limit(self, parts: Iterable[Part]) -> None:
        """Write what is granted of each card."""
        for card, part in zip(self.record.card, parts, strict=False):
            if (card.limit, card.compute) != (part.memory, part.compute):
                card.limit, card.compute = part.memory, part.compute

    def used(self, card: int) -> int:
        """Return the bytes of a card that living processes of the container hold."""
        record = self.record.card[card]
        beside: int = record.leases[record.sequence & 1].beside
        return beside + sum(used[card] for used in self.processes().values())

    def processes(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return what living processes allocated of each card, by when and as what they began."""
        count = min(self.record.slots, SLOTS)
        slots = [self.record.slot[i] for i in range(count)]
        return {
            (one.pid, one.start): tuple(one.used[: self.cards])
            for one in slots
            if one.pid > 0 and (self.elsewhere or _lives(one.pid, one.start))
        }

    def write(self, card: int, lease: Mapping[str, int]) -> None:
        """Publish a lease of a card; one that is read meanwhile stays whole."""
        record = self.record.card[card]
        place = record.leases[(record.sequence + 1) & 1]
        for name, value in lease.items():
            setattr(place, name, value)
        record.sequence = (record.sequence + 1) & 0xFFFFFFFF


def _lives(pid: int, start: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    fields = text.rpartition(")")[2].split()
    return fields[0] not in "ZX" and int(fields[19]) == start
