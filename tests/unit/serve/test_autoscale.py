"""The autoscaler against a plain model of Knative's, and its own rules."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.serve.core.autoscale import Autoscaler, Policy, policy

PREFIX = "autoscaling.knative.dev/"


class Knative:
    """Knative's decision (pkg/autoscaler/scaling/autoscaler.go), written down plainly."""

    def __init__(self, asked: Policy) -> None:
        self.asked = asked
        self.seen: list[tuple[float, float]] = []
        self.panic_time: float | None = None
        self.max_panic_pods = 0

    def mean(self, now: float, length: float) -> float:
        inside = [value for at, value in self.seen if now - length < at <= now]
        return sum(inside) / len(inside) if inside else 0.0

    def scale(self, now: float, ready: int) -> int:
        asked, pods = self.asked, max(1, ready)
        most, least = math.ceil(asked.up_rate * pods), math.floor(pods / asked.down_rate)
        stable = math.ceil(self.mean(now, asked.window) / asked.target)
        panic = math.ceil(self.mean(now, asked.window * asked.panic_share) / asked.target)
        desired_stable = min(max(stable, least), most)
        desired_panic = min(max(panic, least), most)
        over = panic / pods >= asked.panic_threshold
        if over:
            self.panic_time = now
        elif self.panic_time is not None and self.panic_time + asked.window < now:
            self.panic_time, self.max_panic_pods = None, 0
        if self.panic_time is not None:
            self.max_panic_pods = max(self.max_panic_pods, desired_panic)
            return self.max_panic_pods
        return desired_stable


@settings(max_examples=examples(200), deadline=None)
@given(
    loads=st.lists(st.floats(0.1, 500.0), min_size=1, max_size=200),
    ready=st.integers(1, 20),
    target=st.floats(0.5, 100.0),
)
def test_decides_as_knative_while_there_is_load(
    loads: list[float], ready: int, target: float
) -> None:
    asked = Policy(target=target, minimum=0)
    ours, theirs = Autoscaler(since=-1000.0), Knative(asked)
    for second, load in enumerate(loads):
        now = float(second)
        ours.record(now, load, asked)
        theirs.seen.append((now, load))
        wanted = theirs.scale(now, ready)
        assert ours.desired(now, ready, asked) == max(1, wanted)


def run(scaler: Autoscaler, asked: Policy, loads: list[float], start: int = 0) -> int:
    """Return what is wanted after *loads*, one a second, all replicas ready."""
    wanted = 1
    for second, load in enumerate(loads, start):
        scaler.record(float(second), load, asked)
        wanted = scaler.desired(float(second), wanted, asked)
    return wanted


@pytest.mark.parametrize(
    ("idle", "minimum", "wanted"),
    [(89, 0, 1), (91, 0, 0), (200, 1, 1), (200, 2, 2)],
)
def test_goes_to_zero_after_window_and_grace(idle: int, minimum: int, wanted: int) -> None:
    scaler = Autoscaler(since=-100.0)
    assert run(scaler, Policy(minimum=minimum), [0.0] * (idle + 1)) == wanted


def test_takes_nothing_away_before_a_whole_window_was_seen() -> None:
    scaler = Autoscaler(since=0.0)
    scaler.record(1.0, 0.0, Policy())
    assert scaler.desired(1.0, 7, Policy(minimum=0)) == 7


def test_a_burst_is_answered_within_the_short_window() -> None:
    asked = Policy(target=1.0)
    scaler = Autoscaler(since=-100.0)
    assert run(scaler, asked, [1.0] * 60) == 1
    assert run(scaler, asked, [20.0] * 6, start=60) >= 17


def test_a_request_wakes_what_went_to_zero() -> None:
    asked = Policy(minimum=0)
    scaler = Autoscaler(since=-100.0)
    assert run(scaler, asked, [0.0] * 95) == 0
    assert run(scaler, asked, [1.0], start=95) == 1


def test_maximum_bounds_everything() -> None:
    assert run(Autoscaler(since=-100.0), Policy(target=1.0, maximum=3), [90.0] * 60) == 3


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        ({"target": "10"}, "target", 7.0),
        ({"target": "10", "target-utilization-percentage": "100"}, "target", 10.0),
        ({"window": "6s"}, "window", 6.0),
        ({"min-scale": "2"}, "minimum", 2),
        ({"max-scale": "5"}, "maximum", 5),
        ({"scale-to-zero-pod-retention-period": "1m5s"}, "grace", 65.0),
        ({}, "target", 70.0),
    ],
)
def test_knatives_annotations_count(annotations: dict[str, str], field: str, value: float) -> None:
    full = {PREFIX + key: text for key, text in annotations.items()}
    found = policy(full, minimum=1, maximum=0)
    assert getattr(found, field) == pytest.approx(value)


@pytest.mark.parametrize("annotation", ["window=1s", "window=x", "target=-1", "min-scale=z"])
def test_a_senseless_annotation_is_named(annotation: str) -> None:
    name, _, text = annotation.partition("=")
    with pytest.raises(ValueError, match=text):
        policy({PREFIX + name: text}, minimum=1, maximum=0)
