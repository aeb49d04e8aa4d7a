"""What one namespace is told of usage: its own bill, its prices, its budgets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.costs import HOUR, claim, known

from lockstep.api.price_list import Budget
from lockstep.api.team import Team
from lockstep.api.wire import convert
from lockstep.insight.cost import billing, visible
from lockstep.insight.cost.allocation import allocations
from lockstep.insight.cost.budgets import Standing
from lockstep.insight.history.records import Claim, NodeSpan

NODES = [NodeSpan("nu", "n", 2, 0.0, labels={"lab": "red"}), NodeSpan("mu", "m", 2, 0.0)]
SPACES = ("red", "blue")


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    def one(number: int) -> Claim:
        space = draw(st.sampled_from(SPACES))
        return claim(
            f"{space}-{number}",
            draw(st.integers(0, 1)),
            draw(st.floats(0, 5)) * HOUR,
            9 * HOUR,
            namespace=space,
            queue=space,
            user=space,
            node=draw(st.sampled_from("nm")),
            share=draw(st.sampled_from([0.5, 1.0])),
        )

    return [one(number) for number in range(draw(st.integers(1, 6)))]


@given(claims(), st.sampled_from([["job"], ["queue", "user"], ["purpose"], ["month"], ["pod"]]))
def test_a_namespaces_bill_is_its_part_of_the_whole(held: list[Claim], by: list[str]) -> None:
    period: dict[str, Any] = {"start": 0, "end": 10 * HOUR}
    price = known({"gpuHour": 3})
    own = billing.bill(NODES, held, price, by=by, sees="red".__eq__, **period)
    whole = billing.bill(NODES, held, price, by=["namespace"], **period)
    part = whole.lines.get(("red",), billing.Line())
    assert own.total.cost == pytest.approx(part.cost)
    assert own.total.starting_gpu_hours == pytest.approx(part.starting_gpu_hours)
    shown = allocations(NODES, held, price, by=by, sees="red".__eq__, **period)
    assert "blue" not in f"{own}{shown}"
    assert "__idle__" not in f"{shown}"


SELECTORS: list[dict[str, str]] = [
    {},
    {"nvidia.com/gpu.product": "H100"},
    {"node.kubernetes.io/instance-type": "p5"},
    {"lab": "red"},
    {"lab": "blue"},
]
PRICES = known(
    *(
        # Each since another year: prices of equally many labels would contradict each other.
        {"gpuHour": at, "selector": selector, "validFrom": f"200{at}-01-01T00:00:00Z"}
        for at, selector in enumerate(SELECTORS, 1)
    )
)


@pytest.mark.parametrize(("space", "told"), [("red", [1, 2, 3, 4]), ("green", [1, 2, 3])])
def test_prices_by_others_labels_are_not_told(space: str, told: list[float]) -> None:
    held = [claim("a", 0, 0, None, namespace="red"), claim("b", 0, 0, None, node="m")]
    found = visible.prices_for(PRICES, NODES, held, space)
    assert [one.gpu_hour for one in found] == told


def test_budgets_of_others_are_not_told() -> None:
    def standing(team: str = "", **of: str) -> Standing:
        return Standing(Budget(month=1, **of), "2026-11", "EUR", 2, team, ("red",) if team else ())

    own = [
        standing(team="vision"),
        standing(namespace="red"),
        standing(queue="vision"),
    ]
    others = [standing(team="blue"), standing(namespace="blue"), standing(user="x"), standing()]
    team = convert({"metadata": {"name": "vision"}, "spec": {"namespaces": ["red"]}}, Team)
    assert list(visible.budgets_for([*others, *own], [team], "red")) == own


def test_usage_of_a_namespace_before_is_its_own() -> None:
    held = [claim(str(hour), 0, hour * HOUR, None, namespace="red") for hour in range(4)]
    blue = claim("blue", 1, 0.0, None, namespace="blue")
    found = visible.present([*held, blue], {"red": 2 * HOUR, "blue": 0.0})
    assert found == [*held[2:], blue]
