"""What is known of a rank of a job that does not go on: what it waits in, and whether it answers.

A launcher reports it, at most 4 KiB a rank; dumps of flight recorders are read into the same.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Wire

Answers = Literal["unknown", "all", "trace", "none", "stopped"]
"""Of a rank's worker server: everything; its trace alone (the interpreter's lock is held); nothing;
nothing, while the kernel says that the process is stopped or waits for a device."""


class Work(Wire, frozen=True):
    """A collective, or a send or receive, that a rank has begun and not finished."""

    group: str
    seq: int
    op: Annotated[str, Meta(description="As all_reduce, or as send 0->1 with ranks of the group.")]
    shape: Annotated[str, Meta(description="Types and sizes of what goes in.")] = ""
    started: bool | None = None
    """Whether the device has begun it; unknown on CPUs."""
    p2p: bool = False


class GroupSeen(Wire, frozen=True):
    """How far a rank has come in one group."""

    group: str
    enqueued: int
    completed: int
    ranks: Annotated[str, Meta(description="Members as 0-3,8; empty where not known.")] = ""
    exchanged: Annotated[int, Meta(description="Sends and receives that it has begun.")] = 0


class RankSeen(Wire, frozen=True):
    """All that is known of one rank."""

    rank: int
    answers: Answers = "unknown"
    groups: list[GroupSeen] = []
    waiting: list[Work] = []
    frames: Annotated[str, Meta(description="Hash of the main thread's stack.")] = ""
    at: Annotated[str, Meta(description="Where the main thread is: file, line and function.")] = ""
    inside: str = ""
    """The function of torch.distributed that the main thread is in."""
    node: str = ""


def members(text: str) -> frozenset[int]:
    """Return the ranks that ``0-3,8`` names.

    Raises:
        ValueError: when it is no such text.
    """
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if not 0 <= begin <= end < 1 << 24:
            raise ValueError(f"{part!r} is no range of ranks")
        found.update(range(begin, end + 1))
    return frozenset(found)
