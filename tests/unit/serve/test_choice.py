"""Which revision and which replica gets a request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lockstep.serve.core.choice import Turns, least_loaded
from lockstep.serve.core.traffic import split


@dataclass
class Busy:
    name: str
    in_flight: int


@given(percent=st.integers(1, 99), requests=st.integers(1, 1000))
def test_two_revisions_get_exactly_their_shares(percent: int, requests: int) -> None:
    turns = Turns()
    weights = {"new": percent, "old": 100 - percent}
    counts = Counter(turns.take(weights) for _ in range(requests))
    assert abs(counts["new"] - requests * percent / 100) < 1


def test_no_turn_without_weight() -> None:
    assert Turns().take({"a": 0}) is None
    assert Turns().take({}) is None
    assert {Turns().take({"a": 0, "b": 100}) for _ in range(3)} == {"b"}


def test_the_least_loaded_replica_below_its_limit_is_taken() -> None:
    replicas = [Busy("a", 3), Busy("b", 1), Busy("c", 1)]
    assert {least_loaded(replicas, 0, turn).name for turn in range(3)} == {"b", "c"}  # type: ignore[union-attr]
    assert least_loaded(replicas, 1, 0) is None
    assert least_loaded([], 0, 0) is None


def test_a_revision_gets_requests_only_once_it_was_ready() -> None:
    table = [
        # latest ready, rolled out, percent -> weights, rolled out
        (False, "", None, {"new": 100}, ""),
        (True, "", None, {"new": 100}, "new"),
        (False, "old", None, {"old": 100}, "old"),
        (True, "old", None, {"new": 100}, "new"),
        (False, "old", 10, {"old": 100}, "old"),
        (True, "old", 10, {"new": 10, "old": 90}, "old"),
        (True, "old", 0, {"old": 100}, "old"),
        (True, "old", 100, {"new": 100}, "new"),
        (True, "new", 10, {"new": 100}, "new"),
    ]
    for ready, rolled_out, percent, weights, then in table:
        found = split("new", latest_ready=ready, rolled_out=rolled_out, percent=percent)
        assert (found.weights, found.rolled_out) == (weights, then)
