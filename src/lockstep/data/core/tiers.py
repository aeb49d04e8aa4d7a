"""On which tier of a node a dataset is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.dataset_cache import CacheTier

BLOCK: Final = 4096


@dataclass(frozen=True, slots=True)
class Room:
    """A tier, and what its medium has left."""

    tier: CacheTier
    free: int
    """Bytes that the file system can still take."""
    used: int = 0
    """Bytes of this dataset that lie there already."""

    @property
    def capacity(self) -> int:
        """Return how many bytes of the dataset may lie there."""
        most = self.used + self.free
        return int(self.tier.high * (min(self.tier.bytes, most) if self.tier.bytes else most))


def in_blocks(size: int) -> int:
    """Return how many bytes a file of *size* takes on a disk."""
    return -(-size // BLOCK) * BLOCK


def choose(rooms: Sequence[Room], need: int) -> int | None:
    """Return the first tier that holds *need* bytes; none when no tier does.

    A dataset lies on one tier as a whole, so that its files are one directory.
    """
    for index, room in enumerate(rooms):
        if need <= room.capacity:
            return index
    return None


def refusal(rooms: Sequence[Room], need: int) -> str:
    """Return in words why no tier holds *need* bytes, and what would help."""
    shown = ", ".join(f"{room.tier.medium} {room.capacity:,} bytes" for room in rooms)
    return (
        f"the dataset needs {need:,} bytes on one tier of this node, and there is: {shown}; "
        "raise spec.tieredstore.levels[].quota of its runtime, or free space on the node"
    )
