"""Grants leases to the shares of this node, turn after turn, and counts what they use."""

from __future__ import annotations

import ctypes
import logging
import mmap
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lockstep.devices.sharing.clock import SECOND, Clock, MonotonicClock
from lockstep.devices.sharing.core.exposition import Use
from lockstep.devices.sharing.core.leases import MOST_OWED, PERIOD, Tenant, Wheel, Window, plan
from lockstep.devices.sharing.region import OPEN, PAUSED, Region
from lockstep.devices.sharing.shelf import Grant, Shelf

log = logging.getLogger(__name__)

HOLDS: Final = 2 * SECOND
"""How long a lease holds that nobody renews."""
AHEAD: Final = 2_000_000
"""How long before a turn begins its leases are published."""
IDLE: Final = SECOND // 2
"""Time between two looks while no share wants its cards."""
SCAN: Final = SECOND // 4
"""Time between two looks for shares that came or went."""


@dataclass
class Held:
    """A share that is granted leases."""

    grant: Grant
    region: Region
    seen: list[int] = field(default_factory=list)
    """What each card's account said when leases were granted last."""
    launched: int = 0
    beside: list[int] = field(default_factory=list)
    """Bytes of each card that its processes hold beside what they allocated."""

    @property
    def cards(self) -> int:
        """Return how many cards it has, by what was granted and by what its file has room for."""
        return min(len(self.grant.cards), int(self.region.cards))

    def launches(self) -> int:
        """Return how often its processes say they gave a card work."""
        return sum(self.region.record.card[i].launches for i in range(self.cards))

    def busy(self) -> list[int]:
        """Return the time of each card that its processes say they used."""
        return [self.region.record.card[i].busy for i in range(self.cards)]


class Granter:
    """The shares of a node and their wheel."""

    def __init__(self, root: Path, clock: Clock | None = None, period: int = PERIOD) -> None:
        self.shelf, self.clock, self.period = Shelf(root), clock or MonotonicClock(), period
        self.held: dict[str, Held] = {}
        self._wheel = Wheel()
        self._planned = self._start = self._scanned = 0
        self._lock = threading.Lock()
        bell = self.shelf.bell
        self._bell_number = bell.stat().st_ino
        with bell.open("r+b") as file:
            self._bell = ctypes.c_uint32.from_buffer(mmap.mmap(file.fileno(), 0))

    def run_until(self, over: Callable[[], bool]) -> None:
        """Grant until it is *over*; a fault is told, and ends no lease."""
        while not over():
            heard = self._bell.value
            try:
                until = self.turn(self.clock.now())
            except Exception:
                log.exception("leases could not be granted; again in a second")
                until = self.clock.now() + SECOND
            if self._bell.value == heard:
                self.clock.wait(self._bell, heard, until, self._bell_number)

    def ring(self) -> None:
        """Look at once."""
        self._bell.value = (self._bell.value + 1) & 0xFFFFFFFF
        self.clock.wake(self._bell, self._bell_number)

    def turn(self, now: int) -> int:
        """Look at all shares, publish their leases; return when to look again."""
        with self._lock:
            if now - self._scanned >= SCAN or not self._scanned:
                self._scan()
                self._scanned = now
            if not self.held:
                return now + SCAN
            tenants = [self._look(one, now) for one in self.held.values()]
            wanted = {one.key for one in tenants if one.wants}
            due = self._start + self.period - AHEAD
            if wanted and wanted <= self._wheel.wanting and now < due:
                return due
            elapsed = now - self._planned if self._planned else 0
            self._wheel, windows = plan(self._wheel, tenants, elapsed, self.period)
            self._planned = now
            self._start = self._next_start(now)
            for held in self.held.values():
                held.seen, held.launched = held.busy(), held.launches()
                self._publish(held, windows[held.grant.key], now)
            pause = self.period if wanted else IDLE
            return self._start + pause - AHEAD

    def shares(self) -> list[Held]:
        """Return the shares of the node."""
        with self._lock:
            return list(self.held.values())

    def uses(self) -> list[Use]:
        """Return what every share uses of each of its cards."""
        return [use for one in self.shares() for use in _uses(one)]

    def _next_start(self, now: int) -> int:
        """Return when the next turn begins: on time, or at once after a bell or a long pause."""
        following = self._start + self.period
        return following if now <= following <= now + 2 * AHEAD else now

    def _scan(self) -> None:
        there: dict[str, tuple[Grant, Path]] = {g.key: (g, p) for g, p in self.shelf.grants()}
        for key in [one for one in self.held if one not in there]:
            del self.held[key]
        for key, (grant, path) in there.items():
            known = self.held.get(key)
            try:
                same = known is not None and known.region.inode == path.stat().st_ino
                if known is not None and same:
                    self._regrant(known, grant)
                else:
                    self.held[key] = Held(grant, Region(path, elsewhere=bool(grant.places)))
            except OSError as error:
                log.debug("share %s: %s", key, error)

    def _regrant(self, held: Held, grant: Grant) -> None:
        """Write what is granted again: it may have changed, here or in the container's hands."""
        held.grant = grant
        held.region.limit(grant.parts)

    def _look(self, held: Held, now: int) -> Tenant:
        grant, record = held.grant, held.region.record
        cards = [record.card[i] for i in range(held.cards)]
        busy = held.busy()
        before = held.seen or busy
        # Less than before where a cost turned out to be smaller than was charged.
        used = max((new - old for new, old in zip(busy, before, strict=False)), default=0)
        used = max(-MOST_OWED, min(MOST_OWED, used))
        launched = held.launches() != held.launched
        wants = used != 0 or launched or any(card.waiting or card.tail > now for card in cards)
        return Tenant(
            key=grant.key,
            cards=tuple(grant.cards),
            compute=grant.compute,
            policy=grant.policy,
            offline=grant.offline,
            wants=wants,
            used=used,
        )

    def _publish(self, held: Held, window: Window, now: int) -> None:
        flags = (OPEN if window.open else 0) | (0 if window.open or window.length else PAUSED)
        lease = {
            "start": self._start,
            "period": self.period,
            "offset": window.offset,
            "length": window.length,
            "until": now + HOLDS,
            "flags": flags,
        }
        for card in range(held.cards):
            beside = held.beside[card] if card < len(held.beside) else 0
            held.region.write(card, {**lease, "beside": beside})
        record = held.region.record
        if any(record.card[i].waiting for i in range(held.region.cards)):
            word = held.region.wake_word()
            word.value = (word.value + 1) & 0xFFFFFFFF
            self.clock.wake(word, held.region.inode)


def _uses(held: Held) -> Iterable[Use]:
    record, grant = held.region.record, held.grant
    for number, uuid in enumerate(grant.cards[: held.cards]):
        card = record.card[number]
        yield Use(
            namespace=grant.namespace,
            pod=grant.pod,
            container=grant.container,
            uuid=uuid,
            number=number,
            limit=grant.memory,
            compute=grant.compute,
            policy=grant.policy,
            memory=held.region.used(number),
            busy=card.busy,
            throttled=card.throttled,
            refused=card.refused,
            unknown=record.unknown,
            fallback=record.fallback,
        )
