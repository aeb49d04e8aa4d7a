"""Copies of what another pod's ranks hold, so that a lost pod's state is left on another node.

Every launcher keeps the copies of one other, half of all pods away, so that two that fail together
for want of a switch or of power are rarely a pair. It fetches each copy as soon as it is there.
Where all ranks hold the same parameters, it fetches only what is a rank's own: random numbers,
samplers, buffers, parts of tensors. Every launcher has the rest.

A rank has its last two copies, and so must have a step when the other launcher has it: ranks copy
their state at multiples of a power of two of steps, which take twice the time of a fetch. Where the
own parts of all ranks are alike, too, each rank's copy serves each other, and no step is left out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lockstep.train.memory import Memory, TooLittleMemory
from lockstep.train.peers import NEWEST, OWN, Asked, NoCopy, fetch
from lockstep.train.place import Place
from lockstep.train.ranks import is_seated, seat
from lockstep.train.saving import steps_between
from lockstep.train.state import Json

EVERY = 0.02
"""Least seconds between two copies of a rank that are fetched."""
_WAIT = 2.0
"""Seconds in which the other launcher may have something new."""
_AWAY = 0.2
"""Seconds until the next look where it does not answer."""
_MARGIN = 2.0


@dataclass(frozen=True)
class Other:
    """The launcher whose ranks' states are kept here."""

    address: str
    ranks: range
    size: int
    only: str = ""
    """Which part of a copy is wanted; empty for all of it."""


def other(place: Place, world: Mapping[str, Any]) -> Other | None:
    """Return whose ranks' states the launcher at *place* keeps in *world*; None for no rank's."""
    peers = world.get("peers", [])
    if world["phase"] != "Run" or len(peers) < 2 or not is_seated(place, world):
        return None
    each = [part["processes"] for part in world["parts"] for _ in range(part["pods"])]
    mine = seat(place, world)
    which = (mine.node + len(peers) // 2) % len(peers)
    first = sum(each[:which])
    only = OWN if world.get("replicated") else ""
    return Other(peers[which], range(first, first + each[which]), mine.size, only)


class Mirror:
    """Keeps the copies up to date, in a thread of its own."""

    def __init__(self, memory: Memory, key: bytes) -> None:
        self._memory, self._key = memory, key
        self._other: Other | None = None
        self._news = threading.Event()
        self._hurried = self._alike = False
        self._problem = ""
        self._took = 0.0
        self._began: tuple[float, int] | None = None
        """When, and at which step, the measuring of steps began."""

    def follow(self, place: Place, world: Mapping[str, Any]) -> None:
        """Keep from now on what *world* says; while no ranks run, what there is stays."""
        found = other(place, world)
        self._alike = bool(world.get("alike"))
        if self._alike:
            self._memory.keep_every(1)
        if found != self._other:
            self._other, self._began, self._took = found, None, 0.0
            if found is not None:
                self._memory.keep_only(found.ranks)
                self._news.set()

    def hurry(self) -> None:
        """Have ranks copy each step: the machine goes away soon."""
        self._hurried = True
        self._memory.keep_every(1)

    def told(self) -> Json:
        """Return what is reported of it."""
        found: Json = {"sharded": True} if self._memory.sharded else {}
        if self._problem:
            found["trouble"] = self._problem
        there = self._other
        if there is not None:
            kept = min(self._memory.peer_step(rank) for rank in there.ranks)
            found |= {"kept": kept} if kept >= 0 else {}
        return found

    def run(self) -> None:
        """Fetch for as long as the launcher lives."""
        while True:
            there = self._other
            if there is None:
                self._news.wait()
                self._news.clear()
                continue
            began = time.monotonic()
            if self.fetch(there, _WAIT, partial(self._follows, there)):
                self._pace()
                time.sleep(EVERY)
            elif time.monotonic() - began < _AWAY:
                time.sleep(_AWAY)

    def _follows(self, there: Other) -> bool:
        return self._other == there

    def fetch(
        self, there: Other, wait: float = 0.0, good: Callable[[], bool] | None = None
    ) -> bool:
        """Fetch what *there* has anew, or will have in *wait* seconds; say if anything came."""
        came, took = False, 0.0
        for rank in there.ranks:
            make = partial(self._memory.peer, rank, there.size)
            after = self._memory.peer_step(rank)
            asked = Asked(NEWEST, rank, after, there.only, wait=wait)
            try:
                got = fetch(there.address, self._key, asked, make, good=good)
                came, self._problem = True, ""
                took += got["seconds"]
            except TooLittleMemory as error:
                self._problem = str(error)
            except NoCopy:
                # Nothing new, or it was written over meanwhile: the next one.
                continue
        # One that was slow once may be so again.
        self._took = max(took, 0.9 * self._took)
        return came

    def _pace(self) -> None:
        """Have ranks copy as often as fetches can follow."""
        step, now = self._memory.progress(), time.monotonic()
        if step is None or self._hurried or self._alike:
            return
        if self._began is None:
            self._began = now, step
            return
        seconds, steps = now - self._began[0], step - self._began[1]
        if seconds > 0 and steps > 0:
            self._memory.keep_every(steps_between(steps / seconds, _MARGIN * (self._took + EVERY)))
