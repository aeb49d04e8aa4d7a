"""When a schedule in cron's five fields falls due."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_NAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_FAR: Final = 366 * 5
"""Days that are looked at: the 29th of February comes every four years, or eight."""


class BadSchedule(ValueError):
    """A schedule that cannot be used; the message says which field and why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Minutes at which something is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Whether a day of the month or of the week is enough: where both are restricted."""
    zone: ZoneInfo

    def after(self, moment: float) -> float | None:
        """Return the first time that is due after the Unix time *moment*; none where never.

        Times that a change of the clocks leaves out are passed over, those that it repeats count
        once.
        """
        at = datetime.fromtimestamp(moment, self.zone).replace(second=0, microsecond=0, tzinfo=None)
        day = at.date()
        for _ in range(_FAR):
            if self.has(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        found = datetime(day.year, day.month, day.day, hour, minute)
                        stamp = self._stamp(found)
                        if stamp is not None and stamp > moment:
                            return stamp
            day += timedelta(days=1)
        return None

    def has(self, day: date) -> bool:
        """Return whether anything is due on *day*."""
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        return by_day or by_weekday if self.either_day else by_day and by_weekday

    def _stamp(self, found: datetime) -> float | None:
        aware = found.replace(tzinfo=self.zone)
        stamp = aware.timestamp()
        back = datetime.fromtimestamp(stamp, self.zone).replace(tzinfo=None)
        return stamp if back == found else None


def parse(text: str, zone: str = "") -> Schedule:
    """Return the schedule that *text* says, by the clocks of *zone* (UTC by default).

    Raises:
        BadSchedule: when it is none.
    """
    fields = _NAMES.get(text.strip(), text).split()
    if len(fields) != 5:
        raise BadSchedule(f"{text!r}: five fields are needed, as '30 2 * * 1-5', or @daily")
    try:
        clocks = ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadSchedule(f"timezone {zone!r} is not known; write one such as Europe/Berlin") from (
            error
        )
    minutes, hours, days, months, weekdays = (
        _field(one, *known) for one, known in zip(fields, _FIELDS, strict=True)
    )
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    weekdays = frozenset(one % 7 for one in weekdays)
    return Schedule(minutes, hours, days, months, weekdays, either, clocks)


def _field(text: str, what: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.lower().split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            low, high = least, most
        else:
            start, dash, end = span.partition("-")
            low = _number(start, what, names)
            high = _number(end, what, names) if dash else (most if step else low)
        width = _number(step, what, {}) if step else 1
        if not least <= low <= high <= most or width < 1:
            raise BadSchedule(f"{what} {part!r}: numbers from {least} to {most} are allowed")
        found.update(range(low, high + 1, width))
    return frozenset(found)


def _number(text: str, what: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not text.isdecimal():
        raise BadSchedule(f"{what} {text!r}: is no number")
    return int(text)
