"""Sets of devices of one node as bit masks: bit *i* stands for the device with index *i*."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

MAX_DEVICES = 64
"""Devices with a higher index are not used: a mask is one 64-bit word."""


def mask_of(indices: Iterable[int]) -> int:
    """Return the mask with the bits of *indices* set."""
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask


@lru_cache(maxsize=65536)
def indices_of(mask: int) -> tuple[int, ...]:
    """Return the indices whose bits are set, ascending."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def format_indices(mask: int) -> str:
    """Return the mask as the annotation writes it: ``0,1,2``."""
    return ",".join(str(i) for i in indices_of(mask))


@lru_cache(maxsize=4096)
def parse_indices(text: str) -> int:
    """Return the mask of an annotation such as ``0,1,2``; words that are no index are left out."""
    found = (part.strip() for part in text.split(","))
    return mask_of(int(p) for p in found if p.isascii() and p.isdigit() and int(p) < MAX_DEVICES)
