"""What a job's time went to, by cause."""

from __future__ import annotations

from typing import Final, Literal

from lockstep.api import timestamp
from lockstep.api.wire import Wire

GoodputCause = Literal["", "productive", "waiting", "starting", "restoring", "recomputing", "hung"]


class Goodput(Wire, frozen=True):
    """What the job's time went to."""

    cause: GoodputCause = ""
    """What it goes to now; empty while the job is suspended or has ended."""
    since: str | None = None
    """Since when."""
    seconds: dict[str, float] = {}
    """Seconds by cause, until the present one began."""
    step: int = -1
    """Most steps finished when ranks ended; up to there they are redone."""
    lost: dict[str, int] = {}
    """Steps that had to be done again, by what had ended the ranks."""
    last: int = -1
    """Steps finished when ranks last ended."""
    ended_by: str = ""
    """What ended them then, such as RanksAnew."""
    counted: int = 0
    """Generation up to which lost steps are counted."""


def spent(goodput: Goodput, now: float) -> dict[str, float]:
    """Return the seconds of each cause up to *now*, Unix time."""
    seconds = dict(goodput.seconds)
    began = timestamp.read(goodput.since)
    if goodput.cause and began is not None:
        seconds[goodput.cause] = seconds.get(goodput.cause, 0.0) + max(0.0, now - began)
    return seconds


def in_words(goodput: Goodput, now: float) -> str:
    """Return the shares by cause: ``goodput 92 % (starting 5 %, waiting 3 %)``; now ...``."""
    seconds = spent(goodput, now)
    total = sum(seconds.values())
    if not total:
        return ""
    lost = sorted(((s, c) for c, s in seconds.items() if c != "productive"), reverse=True)
    parts = [f"{cause} {100 * s / total:.0f} %" for s, cause in lost if s / total >= 0.005]
    return f"{100 * seconds.get('productive', 0.0) / total:.0f} %" + (
        f" ({', '.join(parts)})" if parts else ""
    )


_ENDED_BY: Final = {
    "RanksAnew": "a rank that ended",
    "Replacing": "a lost pod",
    "Restarting": "failed pods",
    "Disrupted": "pods taken away",
    "Resized": "another size",
    "RestartAsked": "a restart asked for",
    "StorageAway": "storage that was away",
    "Suspended": "suspension",
}
"""What ended the ranks, by the reason of the condition."""


def lost_in_words(goodput: Goodput) -> str:
    """Return the steps that were done again: ``62 steps (45 after a lost pod, 17 after ...)``."""
    if not goodput.lost:
        return ""
    ordered = sorted(goodput.lost.items(), key=lambda one: (-one[1], one[0]))
    parts = [f"{steps:,} after {_ENDED_BY.get(why, why)}" for why, steps in ordered]
    total = sum(goodput.lost.values())
    return f"{total:,} step{'' if total == 1 else 's'} ({', '.join(parts)})"
