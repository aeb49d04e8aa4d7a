"""What pods ask of their simulated runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import names
from lockstep.nodes.simulated.wishes import End, WishError, Wishes, end_of, read


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Wishes(0.0, None, 0.0, None)),
        ({names.RUNTIME_ANNOTATION: "2.5"}, Wishes(0.0, 2.5, 0.0, None)),
        ({names.START_DELAY_ANNOTATION: "3"}, Wishes(3.0, None, 0.0, None)),
        ({names.FAIL_RATE_ANNOTATION: "1"}, Wishes(0.0, None, 1.0, None)),
        ({names.FAIL_ANNOTATION: "137"}, Wishes(0.0, None, 0.0, 137)),
        ({names.FAIL_ANNOTATION: ""}, Wishes(0.0, None, 0.0, 1)),
    ],
)
def test_annotations_are_read(annotations: dict[str, str], expected: Wishes) -> None:
    assert read(annotations) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (names.RUNTIME_ANNOTATION, "5m"),
        (names.RUNTIME_ANNOTATION, "-1"),
        (names.RUNTIME_ANNOTATION, "nan"),
        (names.START_DELAY_ANNOTATION, "soon"),
        (names.FAIL_RATE_ANNOTATION, "1.5"),
        (names.FAIL_ANNOTATION, "0"),
        (names.FAIL_ANNOTATION, "256"),
    ],
)
def test_what_cannot_be_understood_is_named(name: str, value: str) -> None:
    with pytest.raises(WishError) as caught:
        read({name: value})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)


@given(st.floats(0.0, 1000.0), st.floats(0.0, 1.0), st.text())
def test_a_run_ends_within_its_runtime_and_always_alike(
    runtime: float, rate: float, seed: str
) -> None:
    wishes = Wishes(0.0, runtime, rate, None)
    end = end_of(wishes, seed)
    assert end == end_of(wishes, seed)
    assert end is not None
    assert 0.0 <= end.after <= runtime
    assert end.exit_code in (0, 1)


def test_the_rate_is_the_share_of_runs_that_fail() -> None:
    wishes = Wishes(0.0, 10.0, 0.3, None)
    ends = [end_of(wishes, str(n)) for n in range(2000)]
    failed = sum(end is not None and end.exit_code == 1 for end in ends)
    assert 0.26 < failed / 2000 < 0.34


def test_a_zero_rate_never_fails_and_no_runtime_never_ends() -> None:
    assert end_of(Wishes(0.0, 10.0, 0.0, None), "s") == End(10.0, 0)
    assert end_of(Wishes(0.0, None, 1.0, None), "s") is None
