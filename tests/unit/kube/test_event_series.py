"""What becomes an Event, and what only raises a count."""

from __future__ import annotations

from dataclasses import replace

from lockstep.api.core import Node, ObjectReference, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.kube.event_series import (
    BURST,
    COMBINED,
    MESSAGE_LIMIT,
    REFILL,
    SIMILAR_LIMIT,
    SIMILAR_WINDOW,
    EventSeries,
    Happening,
    Subject,
)
from lockstep.kube.events import subject_of

POD = Subject("v1", "Pod", "s", "p", "u")
FAILED = Happening(POD, "Warning", "Failed", "no room")


def test_a_repeated_event_raises_the_count_of_the_first() -> None:
    series = EventSeries()
    first = series.take(FAILED, 100.0)
    second = series.take(FAILED, 130.0)
    assert first is not None
    assert second is not None
    assert (first.count, second.count) == (1, 2)
    assert second.name == first.name
    assert (second.first, second.last) == (100.0, 130.0)


def test_different_reasons_and_objects_are_different_events() -> None:
    series = EventSeries()
    others = [
        FAILED,
        replace(FAILED, reason="Other"),
        replace(FAILED, message="other"),
        replace(FAILED, type="Normal"),
        replace(FAILED, subject=replace(POD, uid="u2")),
    ]
    records = [series.take(one, 1.0) for one in others]
    assert len({record.name for record in records if record}) == len(others)


def test_many_messages_for_one_reason_become_one_event() -> None:
    series = EventSeries()
    records = [
        series.take(replace(FAILED, message=f"{n} short"), 1.0) for n in range(SIMILAR_LIMIT + 3)
    ]
    combined = records[SIMILAR_LIMIT:]
    assert len({record.name for record in combined if record}) == 1
    last = combined[-1]
    assert last is not None
    assert last.count == 3
    assert last.happening.message == f"{COMBINED}{SIMILAR_LIMIT + 2} short"
    later = series.take(replace(FAILED, message="anew"), 2.0 + SIMILAR_WINDOW)
    assert later is not None
    assert later.happening.message == "anew"


def test_an_object_with_too_many_events_falls_silent_a_while() -> None:
    series = EventSeries()
    taken = [series.take(FAILED, 1.0) for _ in range(BURST + 5)]
    assert [record is not None for record in taken] == [True] * BURST + [False] * 5
    other = replace(FAILED, subject=replace(POD, name="q"))
    assert series.take(other, 1.0) is not None
    assert series.take(FAILED, 1.0 + REFILL) is not None
    assert series.take(FAILED, 1.0 + REFILL) is None


def test_long_messages_are_cut_to_what_the_server_takes() -> None:
    record = EventSeries().take(replace(FAILED, message="x" * 3000), 1.0)
    assert record is not None
    assert len(record.happening.message) == MESSAGE_LIMIT


def test_events_state_the_kind_that_listed_objects_omit() -> None:
    meta = ObjectMeta(name="x", namespace="s", uid="u")
    assert subject_of(Pod(metadata=meta)) == Subject("v1", "Pod", "s", "x", "u")
    assert subject_of(Node(metadata=meta)).kind == "Node"
    reference = ObjectReference(api_version="a/v1", kind="K", name="x")
    assert subject_of(reference) == Subject("a/v1", "K", "", "x", "")
