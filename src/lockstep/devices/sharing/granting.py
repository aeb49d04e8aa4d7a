"""Grants leases to the shares of this node, turn after turn, and counts what they use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lockstep.devices.sharing.clock import SECOND, Clock, MonotonicClock
from lockstep.devices.sharing.core.exposition import Use
from lockstep.devices.sharing.core.leases import MOST_OWED, PERIOD, Tenant, Wheel, Window, plan
from lockstep.devices.sharing.layout import OPEN, PAUSED, AccountHead
from lockstep.devices.sharing.region import Region
from lockstep.devices.sharing.shelf import Grant, Shelf

log = logging.getLogger(__name__)

HOLDS: Final = 2 * SECOND
"""How long a lease holds that is not renewed."""
AHEAD: Final = 2_000_000
"""How long before a turn begins its leases are published."""
IDLE: Final = SECOND // 2
"""Time between two looks while no share wants its cards."""
SCAN: Final = SECOND // 4
"""Time between two looks for shares that came or went."""
RINGS: Final = 20
"""How often a share's bell is heard between two looks for shares; programs ring when they begin."""
_MOST: Final = 1 << 62
"""Counters from here on were not counted."""


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

    looked: tuple[list[int], int] = ([], 0)
    """The same at the last look, which need not have led to a plan."""
    rung: int = 0
    """How often its bell was heard since the last scan."""

    @property
    def cards(self) -> int:
        """Return how many cards it has, by what was granted and by what its file has room for."""
        return min(len(self.grant.cards), int(self.region.cards))

    def told(self) -> AccountHead:
        """Return what its processes say, as it is now."""
        return self.region.account()


def _launches(held: Held, said: AccountHead) -> int:
    """Return how often its processes say they gave a card work."""
    return sum(said.card[i].launches for i in range(held.cards))


def _busy(held: Held, said: AccountHead) -> list[int]:
    """Return the time of each card that its processes say they used."""
    return [min(said.card[i].busy, _MOST) for i in range(held.cards)]


class Granter:
    """The shares of a node and their wheel."""

    def __init__(self, root: Path, clock: Clock | None = None, period: int = PERIOD) -> None:
        self.shelf, self.clock, self.period = Shelf(root), clock or MonotonicClock(), period
        self.held: dict[str, Held] = {}
        self._wheel = Wheel()
        self._planned = self._start = self._scanned = 0
        self._lock = threading.Lock()

    def run_until(self, over: Callable[[], bool]) -> None:
        """Grant until it is *over*; a fault is told, and ends no lease."""
        while not over():
            heard = self.clock.heard()
            try:
                self._hear()
                until = self.turn(self.clock.now())
                bells = [one.region.bell for one in self.shares() if one.rung < RINGS]
            except Exception:
                log.exception("leases could not be granted; again in a second")
                bells, until = [], self.clock.now() + SECOND
            if not over():
                self.clock.wait(bells, heard, until)

    def ring(self) -> None:
        """Look at once."""
        self.clock.ring()

    def _hear(self) -> None:
        """Drain the bells. One that rings all the time is not waited for until the next scan."""
        for one in self.shares():
            one.rung += one.region.drain()

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
                held.seen, held.launched = held.looked
                self._publish(held, windows[held.grant.key], now, held.grant.key in wanted)
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
                    self.held[key] = Held(grant, Region(path))
            except OSError as error:
                log.debug("share %s: %s", key, error)

    def _regrant(self, held: Held, grant: Grant) -> None:
        """Write what is granted again: it may have changed, here or in the container's hands."""
        held.grant, held.rung = grant, 0
        held.region.limit(grant.parts)
        held.region.mend()

    def _look(self, held: Held, now: int) -> Tenant:
        grant, said = held.grant, held.told()
        busy = _busy(held, said)
        before = held.seen or busy
        used = max((new - old for new, old in zip(busy, before, strict=False)), default=0)
        used = max(0, min(MOST_OWED, used))
        held.looked = busy, _launches(held, said)
        launched = held.looked[1] != held.launched
        wants = used != 0 or launched or held.region.wants()
        return Tenant(
            key=grant.key,
            cards=tuple(grant.cards),
            compute=grant.compute,
            policy=grant.policy,
            offline=grant.offline,
            wants=wants,
            used=used,
        )

    def _publish(self, held: Held, window: Window, now: int, wants: bool) -> None:
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
        if wants:
            self.clock.wake(held.region.word(), held.region.inode)


def _uses(held: Held) -> Iterable[Use]:
    said, grant = held.told(), held.grant
    for number, uuid in enumerate(grant.cards[: held.cards]):
        card = said.card[number]
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
            unknown=said.unknown,
            fallback=said.fallback,
            unheld=card.unheld,
            passed=card.passed,
            stranger=said.stranger.decode("ascii", "replace"),
        )
