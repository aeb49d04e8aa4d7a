"""When schedules fall due."""

from __future__ import annotations

from datetime import datetime

import pytest

from lockstep.api.cron import BadSchedule, parse

NOON = datetime.fromisoformat("2026-02-27T12:00:30+00:00").timestamp()


@pytest.mark.parametrize(
    ("text", "zone", "due"),
    [
        ("* * * * *", "", "2026-02-27T12:01+00:00"),
        ("0 12 * * *", "", "2026-02-28T12:00+00:00"),
        ("*/15 * * * *", "", "2026-02-27T12:15+00:00"),
        ("5,50 9-17 * * mon-fri", "", "2026-02-27T12:05+00:00"),
        ("0 0 * * 0", "", "2026-03-01T00:00+00:00"),
        ("0 0 * * 7", "", "2026-03-01T00:00+00:00"),
        ("0 0 29 2 *", "", "2028-02-29T00:00+00:00"),
        # Where both kinds of days are restricted one is enough.
        ("0 0 15 * 6", "", "2026-02-28T00:00+00:00"),
        ("@hourly", "", "2026-02-27T13:00+00:00"),
        ("0 14 * * *", "Europe/Berlin", "2026-02-27T13:00+00:00"),
        ("30 12/6 * jan-mar *", "", "2026-02-27T12:30+00:00"),
    ],
)
def test_a_schedule_falls_due_at_its_next_minute(text: str, zone: str, due: str) -> None:
    assert parse(text, zone).after(NOON) == datetime.fromisoformat(due).timestamp()


def test_a_time_that_the_clocks_leave_out_is_passed_over() -> None:
    before = datetime.fromisoformat("2026-03-29T00:00+01:00").timestamp()
    due = parse("30 2 * * *", "Europe/Berlin").after(before)
    assert due == datetime.fromisoformat("2026-03-30T02:30+02:00").timestamp()


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse("0 0 31 2 *").after(NOON) is None


@pytest.mark.parametrize(
    ("text", "zone", "words"),
    [
        ("* * * *", "", "five fields"),
        ("60 * * * *", "", "minute '60': numbers from 0 to 59"),
        ("* 5-3 * * *", "", "hour '5-3'"),
        ("* * * foo *", "", "month 'foo': is no number"),
        ("*/0 * * * *", "", "minute"),
        ("* * * * *", "Nowhere/At", "timezone 'Nowhere/At' is not known"),
    ],
)
def test_a_wrong_schedule_says_which_field(text: str, zone: str, words: str) -> None:
    with pytest.raises(BadSchedule, match=words):
        parse(text, zone)
