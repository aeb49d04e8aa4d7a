"""A rank's state in memory that outlives the rank: the layout of the segment.

A segment is a file in memory (memfd) of the launcher. Its first page holds a header and two slots'
headers; behind it lie the slots, A and B. A slot holds a table (JSON: what lies where), the plain
values (JSON) and the tensors' bytes. The rank writes one slot while the other is whole, so that
whenever it is killed the newest whole copy is there.

A slot's number counts its writes: odd while one is under way, even when it is whole. Everything is
little-endian; nothing is pickled.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from dataclasses import dataclass

PAGE = 4096
MAGIC = b"LKSTSEG1"
_HEADER = struct.Struct("<8sQQq")
"""Magic, bytes of a slot, layout's checksum, steps finished."""
_PROGRESS = struct.Struct("<q")
_PROGRESS_AT = 24
_SAVE_EVERY_AT = 32
_KEEP_EVERY_AT = 40
_SPLIT_AT = 48
_SPLIT = struct.Struct("<QQQ")
"""Bytes of what all ranks share, checksum of their table, bytes of them that are left out."""
_SLOT = struct.Struct("<QqQQQQQI")
"""Number, step, generation, table bytes, plain bytes, data offset in the slot, data bytes, crc."""
_NUMBER = struct.Struct("<Q")
_SLOTS_AT = (512, 1024)

NOTHING = -1
"""In place of a step: none yet."""


class BadSegment(Exception):
    """What was found is no segment of ours."""


@dataclass(frozen=True)
class Split:
    """What of a rank's tensors all ranks hold alike; it lies behind what is the rank's own."""

    shared: int = 0
    """Bytes of that at the end of a slot."""
    sum: int = 0
    """Checksum of its table."""
    absent: int = 0
    """Bytes of it that are left out, since every rank can give them."""


ALL_OWN = Split()


@dataclass(frozen=True)
class Whole:
    """A whole copy."""

    slot: int
    number: int
    step: int
    generation: int
    table: int
    plain: int
    data: int
    size: int
    """Bytes of tensors."""


def total(slot_bytes: int) -> int:
    """Return the bytes of a segment with two slots of *slot_bytes*."""
    return PAGE + 2 * rounded(slot_bytes)


def rounded(size: int) -> int:
    """Return *size* rounded up to whole pages."""
    return -(-size // PAGE) * PAGE


class Segment:
    """One segment, mapped."""

    def __init__(self, fd: int, *, populate: bool = False) -> None:
        size = os.fstat(fd).st_size
        flags = mmap.MAP_SHARED
        if populate:
            # Pages that are there beforehand cost the first steps nothing.
            flags |= getattr(mmap, "MAP_POPULATE", 0x8000)
        self.map = mmap.mmap(fd, size, flags)
        self.blocks: dict[Whole, list[bytes]] = {}
        """Checksums of copies that came from elsewhere, of each block."""

    @classmethod
    def fresh(cls, fd: int, slot_bytes: int, layout: int, split: Split = ALL_OWN) -> Segment:
        """Lay out an empty segment on *fd*, which is as large as ``total(slot_bytes)``."""
        made = cls(fd, populate=True)
        _HEADER.pack_into(made.map, 0, MAGIC, rounded(slot_bytes), layout, NOTHING)
        _SPLIT.pack_into(made.map, _SPLIT_AT, split.shared, split.sum, split.absent)
        for at in _SLOTS_AT:
            _SLOT.pack_into(made.map, at, 0, NOTHING, 0, 0, 0, 0, 0, 0)
        return made

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot.

        Raises:
            BadSegment: when this is none of ours.
        """
        return self._head()[1]

    @property
    def layout(self) -> int:
        """Checksum of the table that the slots were laid out for."""
        return self._head()[2]

    @property
    def split(self) -> Split:
        """What of a slot all ranks hold alike."""
        return Split(*_SPLIT.unpack_from(self.map, _SPLIT_AT))

    def _head(self) -> tuple[bytes, int, int, int]:
        magic, size, layout, progress = _HEADER.unpack_from(self.map, 0)
        if magic != MAGIC or total(size) > len(self.map):
            raise BadSegment("the memory handed over holds no segment")
        return magic, size, layout, progress

    @property
    def progress(self) -> int | None:
        """The last step that was finished, as the rank tells."""
        step: int = _PROGRESS.unpack_from(self.map, _PROGRESS_AT)[0]
        return None if step == NOTHING else step

    @progress.setter
    def progress(self, step: int) -> None:
        _PROGRESS.pack_into(self.map, _PROGRESS_AT, step)

    @property
    def save_every(self) -> int:
        """Steps between two saves, as the launcher wants them; 0 for none."""
        every: int = _PROGRESS.unpack_from(self.map, _SAVE_EVERY_AT)[0]
        return every

    @save_every.setter
    def save_every(self, steps: int) -> None:
        _PROGRESS.pack_into(self.map, _SAVE_EVERY_AT, steps)

    @property
    def keep_every(self) -> int:
        """Steps between two copies, as the launcher wants them; 0 for each step."""
        every: int = _PROGRESS.unpack_from(self.map, _KEEP_EVERY_AT)[0]
        return every

    @keep_every.setter
    def keep_every(self, steps: int) -> None:
        _PROGRESS.pack_into(self.map, _KEEP_EVERY_AT, steps)

    def start(self, slot: int) -> int:
        """Return where a slot begins."""
        return PAGE + slot * self.slot_bytes

    def whole(self) -> list[Whole]:
        """Return the whole copies, the newest first."""
        if self.map[: len(MAGIC)] != MAGIC:
            return []
        found = []
        for slot, at in enumerate(_SLOTS_AT):
            raw = bytes(self.map[at : at + _SLOT.size])
            number, step, generation, table, plain, data, size, crc = _SLOT.unpack(raw)
            if number and number % 2 == 0 and crc == zlib.crc32(raw[:-4]):
                found.append(Whole(slot, number, step, generation, table, plain, data, size))
        return sorted(found, key=lambda one: one.step, reverse=True)

    def begin(self) -> int:
        """Return the slot to write next, marked as being written."""
        whole = self.whole()
        slot = 1 - whole[0].slot if whole else 0
        number: int = _NUMBER.unpack_from(self.map, _SLOTS_AT[slot])[0]
        _NUMBER.pack_into(self.map, _SLOTS_AT[slot], number + 1 + number % 2)
        return slot

    def end(
        self, slot: int, step: int, generation: int, lengths: tuple[int, int, int, int]
    ) -> None:
        """Mark what was written as whole; *lengths* are table, plain, data offset and data."""
        at = _SLOTS_AT[slot]
        number: int = _NUMBER.unpack_from(self.map, at)[0]
        raw = _SLOT.pack(number + 1, step, generation, *lengths, 0)
        # The number last: until then the slot does not count.
        self.map[at + 8 : at + _SLOT.size] = raw[8:-4] + struct.pack("<I", zlib.crc32(raw[:-4]))
        _NUMBER.pack_into(self.map, at, number + 1)
        self.progress = step

    def drop(self, whole: Whole) -> None:
        """Let a copy count no more."""
        _NUMBER.pack_into(self.map, _SLOTS_AT[whole.slot], 0)

    def forget_after(self, step: int) -> None:
        """Let no copy count that is newer than *step*: everybody goes on from there."""
        for one in self.whole():
            if one.step > step:
                self.drop(one)
        if self.progress is not None and self.progress > step:
            self.progress = step

    def read(self, start: int, size: int) -> bytes:
        """Return bytes of the segment."""
        return bytes(self.map[start : start + size])
