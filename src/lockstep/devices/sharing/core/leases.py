"""Who may use which card when: a wheel of time for the shares of a node, made anew each period.

Each share is owed its hundredths of every period and pays with the time that it was metered. What
it is owed it gets as one window of the next period, the same on all its cards, so that the ranks
of a container run together. A kernel that ran beyond its window makes a debt, which later windows
pay; what a share could not use for another's debt it gets later. Idle time is kept for no longer
than a period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from lockstep.devices.sharing.core.marks import Pressure, pressed

PERIOD: Final = 20_000_000
"""Nanoseconds of one turn of the wheel."""
MOST_OWED: Final = 1_000_000_000
"""What a share that waits can be owed at most, in nanoseconds."""
MOST_DEBT: Final = 10_000_000_000
"""The longest debt that is paid, in nanoseconds: a kernel of 10 s is paid whole."""
LEAST_WINDOW: Final = 100_000
"""Windows below this are kept for a later period."""

Policy = Literal["fixed", "burst", "none"]


@dataclass(frozen=True, slots=True)
class Tenant:
    """One container's share: what it was granted, and what it was seen to do since the last plan.

    ``compute`` are hundredths of each of its cards; 0 is what others leave. ``used`` are the
    nanoseconds that it was metered for on its busiest card.
    """

    key: str
    cards: tuple[str, ...]
    compute: int = 0
    policy: Policy = "fixed"
    weight: int = 1
    offline: bool = False
    wants: bool = False
    used: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """When a share may use its cards in each period; ``open`` is always."""

    offset: int = 0
    length: int = 0
    open: bool = False


@dataclass(frozen=True, slots=True)
class Wheel:
    """What each share is owed, in nanoseconds; negative is a debt."""

    owed: Mapping[str, int] = field(default_factory=dict)
    wanting: frozenset[str] = frozenset()
    """Those that wanted the card when the wheel was made."""
    lent: Mapping[str, int] = field(default_factory=dict)
    """What each was lent of each period, beyond what it was owed."""
    pressure: Mapping[str, Pressure] = field(default_factory=dict)
    """By card, what its online shares do, where offline ones wait for them."""


def plan(
    wheel: Wheel, tenants: Sequence[Tenant], elapsed: int, period: int = PERIOD
) -> tuple[Wheel, dict[str, Window]]:
    """Return the wheel after *elapsed* nanoseconds, and each share's window from now on."""
    owed = {one.key: _owed(wheel, one, elapsed, period) for one in tenants}
    pressure = _pressure(wheel, tenants, owed, elapsed, period)
    paused = {card for card, one in pressure.items() if one.paused}
    lengths, lent = _lengths(tenants, owed, period, paused)
    wanting = frozenset(one.key for one in tenants if one.wants)
    return Wheel(owed, wanting, lent, pressure), _windows(tenants, lengths, period)


def _pressure(
    wheel: Wheel, tenants: Sequence[Tenant], owed: Mapping[str, int], elapsed: int, period: int
) -> dict[str, Pressure]:
    """Return what online shares do of each card that offline ones use too."""
    found = {}
    for card in {card for one in tenants if one.offline for card in one.cards}:
        online = [one for one in tenants if card in one.cards and not one.offline]
        used = sum(one.used for one in online)
        behind = max((owed[one.key] - _turn(one, period) for one in online if one.wants), default=0)
        before = wheel.pressure.get(card, Pressure())
        found[card] = pressed(before, used, behind, elapsed)
    return found


def _turn(one: Tenant, period: int) -> int:
    return one.compute * period // 100


def _owed(wheel: Wheel, one: Tenant, elapsed: int, period: int) -> int:
    turn = _turn(one, period)
    if one.key not in wheel.owed:
        return turn
    lent = wheel.lent.get(one.key, 0) * elapsed // period
    owes = max(0, one.used - lent)
    now = wheel.owed[one.key] + one.compute * elapsed // 100 - owes
    waits = one.wants and one.key in wheel.wanting
    return max(-MOST_DEBT, min(now, MOST_OWED if waits else turn))


def limited(tenants: Iterable[Tenant]) -> bool:
    """Tell whether any of these shares has a limit that the others must leave it."""
    return any(one.compute and one.policy != "none" for one in tenants)


def _lengths(
    tenants: Sequence[Tenant], owed: Mapping[str, int], period: int, paused: set[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return how long each may run in the next period, and what of that is lent.

    On no card that is more than the whole of it together. On *paused* ones no offline share runs.
    """
    room = {card: period for one in tenants for card in one.cards}
    lengths: dict[str, int] = {}

    def grant(one: Tenant, wanted: int) -> None:
        had = lengths.get(one.key, 0)
        got = max(0, min(wanted - had, *(room[card] for card in one.cards)))
        lengths[one.key] = had + got
        for card in one.cards:
            room[card] -= got

    gated = [one for one in tenants if one.compute and one.cards and not one.offline]
    lending = {card for one in tenants if _takes(one) for card in one.cards}
    # First what each is granted in every period, as far as it has not used it ahead of time. What
    # no other holder could use stays reserved for those that are idle.
    for one in gated:
        if one.wants or not lending & set(one.cards):
            grant(one, min(owed[one.key], _turn(one, period)))
    # Then what is owed from before, to those that are owed most.
    for one in sorted(gated, key=lambda one: -owed[one.key]):
        if one.wants:
            grant(one, min(owed[one.key], period))
    # Offline shares get what these leave, up to their own parts.
    for one in tenants:
        if one.offline and one.compute and one.wants and not paused & {*one.cards}:
            grant(one, min(owed[one.key], _turn(one, period)))
    lent = _lend([one for one in tenants if not one.offline or not paused & {*one.cards}], room)
    whole = {key: lengths.get(key, 0) + lent.get(key, 0) for key in {*lengths, *lent}}
    return {key: length if length >= LEAST_WINDOW else 0 for key, length in whole.items()}, lent


def _lend(tenants: Sequence[Tenant], room: dict[str, int]) -> dict[str, int]:
    """Return what each gets of what is left, card by card: those that want it, by their weights."""
    lent: dict[str, int] = {}
    takers = [one for one in tenants if one.cards and _takes(one) and not _capped(one)]
    while takers:
        shares = {
            card: room[card] // max(1, sum(one.weight for one in takers if card in one.cards))
            for card in room
        }
        best = min(takers, key=lambda one: (min(shares[card] for card in one.cards), one.key))
        lent[best.key] = best.weight * min(shares[card] for card in best.cards)
        for card in best.cards:
            room[card] -= lent[best.key]
        takers.remove(best)
    return lent


def _takes(one: Tenant) -> bool:
    return one.wants and (one.policy == "burst" or one.offline or not one.compute)


def _capped(one: Tenant) -> bool:
    """Tell whether an offline share keeps to its part, however much is left."""
    return one.offline and one.policy == "fixed" and one.compute > 0


def _windows(
    tenants: Sequence[Tenant], lengths: Mapping[str, int], period: int
) -> dict[str, Window]:
    """Return one window each, the same on all its cards.

    Online shares come first, and of them those on many cards.
    """
    found: dict[str, Window] = {}
    filled: dict[str, int] = {}
    order = sorted(tenants, key=lambda one: (one.offline, -len(one.cards), one.cards, one.key))
    for one in order:
        if _open(one, tenants):
            found[one.key] = Window(0, period, open=True)
            continue
        start = max((filled.get(card, 0) for card in one.cards), default=0)
        length = max(0, min(lengths.get(one.key, 0), period - start))
        found[one.key] = Window(start, length)
        for card in one.cards:
            filled[card] = start + length
    return found


def _open(one: Tenant, tenants: Sequence[Tenant]) -> bool:
    """Tell whether a share goes through without a gate: no limit, and none that it would harm."""
    if one.policy == "none":
        return True
    beside = [other for other in tenants if set(other.cards) & set(one.cards)]
    return not limited(beside)
