"""What a request to OpenCost's ``/allocation`` asks for: time, steps and groups. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from lockstep.api import timestamp

DAY: Final = 86_400.0
MOST_SETS: Final = 400
_UNITS: Final = {"m": 60.0, "h": 3_600.0, "d": DAY, "w": 7 * DAY}
_LENGTH: Final = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
_GROUPS: Final[Mapping[str, str]] = {
    "namespace": "namespace",
    "controller": "job",
    "deployment": "job",
    "job": "job",
    "pod": "job",
    "label:queue": "queue",
    "queue": "queue",
    "label:user": "user",
    "user": "user",
    "purpose": "purpose",
}
"""What OpenCost's groups are called here. A pod is told with its job."""
_TRUE: Final = frozenset({"true", "1", "t"})


class BadQuestion(ValueError):
    """A parameter makes no sense; the message begins with its name."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for; times are Unix time."""

    start: float
    end: float
    step: float
    """Seconds of one set of the answer."""
    by: tuple[str, ...]
    """Groups as ``lockstep cost --by`` takes them."""

    @property
    def sets(self) -> list[tuple[float, float]]:
        """Return the period of each set of the answer."""
        found, at = [], self.start
        while at < self.end:
            found.append((at, min(at + self.step, self.end)))
            at += self.step
        return found


def read(given: Mapping[str, str], now: float) -> Question:
    """Return what the parameters *given* ask for at *now*.

    Raises:
        BadQuestion: when one of them makes no sense.
    """
    start, end = _window(given.get("window", ""), now)
    whole = end - start
    step = _length(given["step"], "step") if given.get("step") else whole
    if given.get("accumulate", "").lower() in _TRUE:
        step = whole
    if whole / step > MOST_SETS:
        raise BadQuestion(f"step: that makes more than {MOST_SETS} sets; use a longer one")
    return Question(start, end, step, _by(given.get("aggregate", "")))


def _by(text: str) -> tuple[str, ...]:
    names = [one.strip() for one in text.split(",") if one.strip()]
    if names == ["cluster"]:
        return ()
    unknown = [one for one in names if one not in _GROUPS]
    if unknown:
        known = ", ".join(("cluster", *_GROUPS))
        raise BadQuestion(f"aggregate: {unknown[0][:40]!r} is not known; there are: {known}")
    return tuple(dict.fromkeys(_GROUPS[one] for one in names)) or ("namespace", "job")


def _window(text: str, now: float) -> tuple[float, float]:
    if not text:
        raise BadQuestion("window: it is missing; say 24h, 7d, month, lastmonth, or START,END")
    if "," in text:
        first, _, last = text.partition(",")
        start, end = _moment(first), _moment(last)
    elif _LENGTH.fullmatch(text):
        start, end = now - _length(text, "window"), now
    else:
        start, end = _named(text, now)
    if not start < end:
        raise BadQuestion(f"window: {text[:60]!r} ends before it begins")
    return start, end


def _named(text: str, now: float) -> tuple[float, float]:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    # OpenCost's weeks begin on Sunday.
    week = today - timedelta(days=(today.weekday() + 1) % 7)
    month = today.replace(day=1)
    last_month = (month - timedelta(days=1)).replace(day=1)
    spans = {
        "today": (today, None),
        "yesterday": (today - timedelta(days=1), today),
        "week": (week, None),
        "lastweek": (week - timedelta(days=7), week),
        "month": (month, None),
        "lastmonth": (last_month, month),
    }
    if text not in spans:
        raise BadQuestion(
            f"window: {text[:60]!r} is none; say 24h, 7d, {', '.join(spans)}, or START,END"
        )
    first, last = spans[text]
    return first.timestamp(), now if last is None else last.timestamp()


def _moment(text: str) -> float:
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return float(text)
    found = timestamp.read(text)
    if found is None:
        raise BadQuestion(f"window: {text[:40]!r} is no time; write 2027-01-31T00:00:00Z")
    return found


def _length(text: str, field: str) -> float:
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise BadQuestion(f"{field}: {text[:40]!r} is no length of time; write 30m, 24h, 7d, 4w")
    return int(found[1]) * _UNITS[found[2]]
