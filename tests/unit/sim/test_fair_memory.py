"""Fair share over time: over ten mean run times each queue has its share, at any time nearly so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.fair_shares import Part, Saturated, deviation

ONE = ("1x1",)
TREE: dict[str, Part] = {
    "A": (None, 1, 0),
    "B": (None, 3, 0),
    "A1": ("A", 1, 0),
    "A2": ("A", 3, 0),
    "B1": ("B", 2, 0),
    "B2": ("B", 1, 0),
}


def flat(*weights: int) -> dict[str, Part]:
    return {name: (None, weight, 0) for name, weight in zip("ABCD", weights, strict=False)}


EVEN: dict[str, Saturated] = {
    "equal weights": Saturated(flat(1, 1), "1x4", {"A": ONE, "B": ONE}),
    "weights 1 and 3": Saturated(flat(1, 3), "1x8", {"A": ONE, "B": ONE}),
    "three weights": Saturated(flat(5, 1, 2), "1x8", {"A": ONE, "B": ONE, "C": ONE}),
    "shares of half a job": Saturated(flat(1, 1), "1x7", {"A": ONE, "B": ONE}),
    "unlike sizes": Saturated(flat(1, 1), "2x8", {"A": ("1x1", "1x2"), "B": ONE}),
    "large beside small": Saturated(flat(1, 1), "2x8", {"A": ("1x4",), "B": ONE}),
    "borrowing": Saturated({"A": (None, 1, 4), "B": (None, 1, 0)}, "1x8", {"A": ONE, "B": ONE}),
    "a tree": Saturated(TREE, "2x8", dict.fromkeys(("A1", "A2", "B1", "B2"), ONE)),
    "past use counts": Saturated(flat(1, 1), "1x7", {"A": ONE, "B": ONE}, half_life="5m"),
}


def even(case: Saturated) -> None:
    found = deviation(case)
    assert found.average <= 0.02, found
    assert found.moment <= case.largest, found


@pytest.mark.parametrize("case", EVEN.values(), ids=EVEN)
def test_over_ten_run_times_each_queue_has_its_share(case: Saturated):
    even(case)


@st.composite
def cases(draw: st.DrawFn) -> Saturated:
    weights = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=2, max_size=3))
    sizes = {
        name: tuple(draw(st.sampled_from([ONE, ("1x1", "1x2"), ("1x2",), ("2x1",)])))
        for name, _ in zip("ABC", weights, strict=False)
    }
    tree: dict[str, Part] = flat(*weights)
    if draw(st.booleans()):
        tree["A"] = (None, weights[0], draw(st.integers(1, 4)))
    half_life = draw(st.sampled_from(["", "", "5m"]))
    return Saturated(
        tree,
        draw(st.sampled_from(["2x8", "3x8"])),
        sizes,
        seed=draw(st.integers(0, 99)),
        half_life=half_life,
    )


@settings(max_examples=examples(2), deadline=None, derandomize=True)
@given(cases())
def test_drawn_queues_have_their_shares_over_time(case: Saturated):
    even(case)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=examples(100), deadline=None)
@given(cases())
def test_many_queues_have_their_shares_over_time(case: Saturated):
    even(case)
