"""What a job's time went to, by cause."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from lockstep.api import timestamp
from lockstep.api.wire import Wire

GoodputCause = Literal["", "productive", "waiting", "starting", "restoring", "recomputing", "hung"]
CAUSES: Final = ("productive", "waiting", "starting", "restoring", "recomputing", "hung")


class Goodput(Wire, frozen=True):
    """What the job's time went to."""

    cause: Annotated[
        GoodputCause,
        Meta(description="What it goes to now; empty while the job is suspended or has ended."),
    ] = ""
    since: Annotated[str | None, Meta(description="Since when.")] = None
    seconds: Annotated[
        dict[str, float], Meta(description="Seconds by cause, until the present one began.")
    ] = {}
    step: Annotated[
        int, Meta(description="Steps finished when ranks last ended; up to there they are redone.")
    ] = -1


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
