"""Copies of ranks' states in memory: what a lost pod costs a job."""

from __future__ import annotations

from lockstep.api.wire import Wire


class Copies(Wire, frozen=True):
    """What keeps the states of a job's ranks in memory."""

    bytes: int
    """Bytes of a copy of a rank's state; the most of all."""
    every: int = 1
    """Steps from one copy to the next."""
    elsewhere: bool = False
    """Whether each rank's state has a copy with another pod."""
    alike: bool = False
    """Whether the own parts of all ranks are alike, but for random numbers."""


def safe(copies: Copies, replicated: bool) -> bool:
    """Say whether a job keeps its steps when it loses a pod."""
    return copies.elsewhere or (replicated and copies.alike)


def in_words(copies: Copies | None, replicated: bool) -> str:
    """Return what a lost pod costs: ``a lost pod costs at most 1 step; 2 x 1.4 GB ...``."""
    if copies is None:
        return ""
    if safe(copies, replicated):
        most = "1 step" if copies.every == 1 else f"{copies.every} steps"
        cost = f"a lost pod costs at most {most}"
    else:
        cost = "a lost pod costs all steps since the newest checkpoint: no other pod has a copy"
    return f"{cost}; 2 x {_size(copies.bytes)} of memory a rank"


def _size(count: int) -> str:
    for unit, least in (("GB", 1e9), ("MB", 1e6)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{max(1, count // 1000)} kB"
