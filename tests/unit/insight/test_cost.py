"""Prices without contradiction, and bills that sum up to what the nodes cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.costs import HOUR, Json, claim, known, listed

from lockstep.api import timestamp
from lockstep.api.price_list import PriceList
from lockstep.api.wire import convert
from lockstep.insight.cost import billing, prices
from lockstep.insight.history.records import NodeSpan

EXAMPLE = Path(__file__).parents[3] / "examples/insight/prices.yaml"


BAD = [
    ([listed({"gpuHour": float("inf")})], "list: spec.prices[0].gpuHour", "at least 0"),
    ([listed({})], "list: spec.prices[0]", "exactly one"),
    ([listed({"gpuHour": 1, "nodeHour": 8})], "list: spec.prices[0]", "exactly one"),
    ([listed({"gpuHour": 1}, {"nodeHour": 8})], "list: spec.prices[1].selector", "overlaps"),
    (
        [listed({"gpuHour": 1, "selector": {"a": "1"}}, {"gpuHour": 2, "selector": {"b": "1"}})],
        "list: spec.prices[1].selector",
        "overlaps list: spec.prices[0]",
    ),
    (
        [listed({"gpuHour": 1}), listed(currency="USD", name="other")],
        "other: spec.currency",
        "must be EUR",
    ),
    (
        [listed({"gpuHour": 1}), listed({"gpuHour": 2}, name="other")],
        "other: spec.prices[0].selector",
        "overlaps list",
    ),
]


@pytest.mark.parametrize(("lists", "field", "words"), BAD)
def test_bad_prices_are_refused_by_field(lists: list[PriceList], field: str, words: str) -> None:
    _, wrong = prices.read(lists)
    assert [one.field for one in wrong] == [field]
    assert words in str(wrong[0])


def test_a_negative_price_is_refused_by_field() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"prices\[0\]\.gpuHour"):
        listed({"gpuHour": -1})


GOOD = [
    [{"gpuHour": 1}, {"gpuHour": 0.5, "spot": True}],
    [{"gpuHour": 1}, {"gpuHour": 2, "validFrom": "2026-01-01T00:00:00Z"}],
    [{"gpuHour": 1}, {"gpuHour": 2, "selector": {"a": "1"}}],
    [{"gpuHour": 1, "selector": {"a": "1"}}, {"gpuHour": 2, "selector": {"a": "2"}}],
    [],
]


@pytest.mark.parametrize("given", GOOD)
def test_prices_that_no_node_bears_twice_are_taken(given: list[Json]) -> None:
    assert prices.read([listed(*given)])[1] == []


def test_the_example_holds_prices_without_contradiction() -> None:
    lists = [convert(one, PriceList) for one in yaml.safe_load_all(EXAMPLE.read_text())]
    assert prices.read(lists)[1] == []


NODE = NodeSpan("nu", "n", 4, 0.0, None, labels={"a": "1"})
RATES = [
    ([{"gpuHour": 3}], [(0, 10, 3.0)]),
    ([{"nodeHour": 8}], [(0, 10, 2.0)]),
    ([{"gpuHour": 3, "spot": True}], [(0, 10, None)]),
    ([{"gpuHour": 3, "selector": {"a": "2"}}], [(0, 10, None)]),
    ([{"gpuHour": 3}, {"gpuHour": 5, "selector": {"a": "1"}}], [(0, 10, 5.0)]),
    (
        [{"gpuHour": 3}, {"gpuHour": 5, "validFrom": timestamp.show(4)}],
        [(0, 4, 3.0), (4, 10, 5.0)],
    ),
    ([{"gpuHour": 5, "validFrom": timestamp.show(4)}], [(0, 4, None), (4, 10, 5.0)]),
]


@pytest.mark.parametrize(("given", "expected"), RATES)
def test_the_most_specific_price_holds_from_its_time_on(given: list[Json], expected: Any) -> None:
    assert list(known(*given).rates(NODE, 0, 10)) == expected


def test_a_quarter_of_a_card_costs_a_quarter() -> None:
    held = [claim("a", 0, 0, HOUR, share=0.25)]
    found = billing.bill([NODE], held, known({"gpuHour": 4}), by=["job"], start=0, end=HOUR)
    assert found.lines["s", "a"].cost == pytest.approx(1.0)
    assert (found.free.cost, found.total.cost) == (pytest.approx(15.0), pytest.approx(16.0))


def test_hours_without_a_price_are_told_apart() -> None:
    prices_ = known({"gpuHour": 4, "validFrom": timestamp.show(HOUR)})
    found = billing.bill(
        [NODE], [claim("a", 0, 0, None)], prices_, by=["user"], start=0, end=2 * HOUR
    )
    line = found.lines[(billing.UNKNOWN,)]
    assert (line.gpu_hours, line.unpriced_gpu_hours, line.cost) == (2.0, 1.0, 4.0)


def test_usage_splits_where_a_month_ends() -> None:
    newyear = timestamp.parse("2027-01-01T00:00:00Z")
    node = NodeSpan("nu", "n", 1, newyear - HOUR)
    held = [claim("a", 0, newyear - HOUR, newyear + 2 * HOUR)]
    found = billing.bill(
        [node], held, known(), by=["month"], start=newyear - HOUR, end=newyear + 2 * HOUR
    )
    hours = {key: line.gpu_hours for key, line in found.lines.items()}
    assert hours == {("2026-12",): 1.0, ("2027-01",): 2.0}


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 90), st.integers(0, 90), st.floats(0.05, 1))
    ),
    st.integers(1, 99),
)
def test_lines_sum_up_to_the_bill_of_the_nodes(
    drawn: list[tuple[int, int, int, float]], change: int
) -> None:
    held = [
        claim(f"u{i}", gpu, start, start + length, share=share, queue=f"q{i % 3}")
        for i, (gpu, start, length, share) in enumerate(drawn)
    ]
    given_ = known({"gpuHour": 3}, {"nodeHour": 20, "validFrom": timestamp.show(change)})
    found = billing.bill([NODE], held, given_, by=["queue"], start=0, end=100)
    expected = 4 * (3 * change + 5 * (100 - change)) / HOUR
    assert found.total.cost == pytest.approx(expected)
