"""What a request to OpenCost's /allocation asks for."""

from __future__ import annotations

import pytest

from lockstep.api import timestamp
from lockstep.insight.cost import windows

NOW = timestamp.parse("2027-03-10T15:00:00Z")  # a Wednesday
DAY = 86_400


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("24h", "2027-03-09T15:00:00Z", "2027-03-10T15:00:00Z"),
        ("7d", "2027-03-03T15:00:00Z", "2027-03-10T15:00:00Z"),
        ("today", "2027-03-10T00:00:00Z", "2027-03-10T15:00:00Z"),
        ("yesterday", "2027-03-09T00:00:00Z", "2027-03-10T00:00:00Z"),
        ("week", "2027-03-07T00:00:00Z", "2027-03-10T15:00:00Z"),
        ("lastweek", "2027-02-28T00:00:00Z", "2027-03-07T00:00:00Z"),
        ("month", "2027-03-01T00:00:00Z", "2027-03-10T15:00:00Z"),
        ("lastmonth", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z"),
        (
            "2027-01-01T00:00:00Z,2027-01-02T00:00:00Z",
            "2027-01-01T00:00:00Z",
            "2027-01-02T00:00:00Z",
        ),
        ("1798761600,1798848000", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z"),
    ],
)
def test_a_window_is_read_as_opencost_reads_it(text: str, start: str, end: str) -> None:
    asked = windows.read({"window": text}, NOW)
    assert (asked.start, asked.end) == (timestamp.parse(start), timestamp.parse(end))
    assert asked.sets == [(asked.start, asked.end)]


@pytest.mark.parametrize(
    ("more", "sets"),
    [({}, 1), ({"step": "1d"}, 3), ({"step": "2d"}, 2), ({"step": "1d", "accumulate": "true"}, 1)],
)
def test_a_step_makes_a_set_each(more: dict[str, str], sets: int) -> None:
    asked = windows.read({"window": "3d", **more}, NOW)
    assert len(asked.sets) == sets
    assert (asked.sets[0][0], asked.sets[-1][1]) == (NOW - 3 * DAY, NOW)


@pytest.mark.parametrize(
    ("aggregate", "by"),
    [
        ("", ("namespace", "job")),
        ("cluster", ()),
        ("namespace", ("namespace",)),
        ("controller,label:queue", ("job", "queue")),
        ("pod,job", ("job",)),
    ],
)
def test_groups_have_opencosts_names(aggregate: str, by: tuple[str, ...]) -> None:
    assert windows.read({"window": "1d", "aggregate": aggregate}, NOW).by == by


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "window"),
        ({"window": "1y"}, "window"),
        ({"window": "0d"}, "window"),
        ({"window": "2027-01-02T00:00:00Z,2027-01-01T00:00:00Z"}, "window"),
        ({"window": "x,y"}, "window"),
        ({"window": "1d", "step": "fast"}, "step"),
        ({"window": "30d", "step": "1m"}, "step"),
        ({"window": "1d", "aggregate": "service"}, "aggregate"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, str], field: str) -> None:
    with pytest.raises(windows.BadQuestion) as refused:
        windows.read(given, NOW)
    assert str(refused.value).startswith(f"{field}: ")
