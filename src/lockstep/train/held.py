"""A copy of a rank's state in memory of the launcher's own, while it is written elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lockstep.train.segment import Segment, Whole

_CHUNK = 16 << 20


@dataclass(frozen=True)
class Held:
    """A copy; ``file`` is a file in memory with the bytes of a slot."""

    step: int
    generation: int
    lengths: tuple[int, int, int, int]
    """Bytes of the table and of the plain values, offset of the tensors, their bytes."""
    file: int

    @classmethod
    def take(cls, segment: Segment, whole: Whole) -> Held | None:
        """Copy *whole*; None where the rank has written over it meanwhile."""
        start, end = segment.start(whole.slot), segment.start(whole.slot) + whole.data + whole.size
        file = os.memfd_create(f"lockstep-step-{whole.step}", os.MFD_CLOEXEC)
        with memoryview(segment.map) as view:
            for at in range(start, end, _CHUNK):
                _write(file, view[at : min(at + _CHUNK, end)])
        if whole not in segment.whole():
            os.close(file)
            return None
        lengths = (whole.table, whole.plain, whole.data, whole.size)
        return cls(whole.step, whole.generation, lengths, file)

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.file)


def take(segment: Segment, step: int) -> Held | None:
    """Return a copy of *step* in memory of its own; None where there is none."""
    for whole in segment.whole():
        if whole.step == step:
            return Held.take(segment, whole)
    return None


def _write(file: int, view: memoryview) -> None:
    done = 0
    while done < len(view):
        done += os.write(file, view[done:])
