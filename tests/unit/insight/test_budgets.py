"""Budgets are counted by month and subject, and warn in time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.insight.test_cost import HOUR, claim

from lockstep.api import timestamp
from lockstep.api.price_list import PriceList
from lockstep.api.wire import convert
from lockstep.insight.cost import prices
from lockstep.insight.cost.budgets import standings
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.report import shown
from lockstep.insight.report.summing import report

Json = dict[str, Any]
START = timestamp.parse("2026-11-01T00:00:00Z")
END = START + 10 * HOUR
NODE = NodeSpan("nu", "n", 4, START - 50 * HOUR)
CLAIMS = [
    claim("a", 0, START - 50 * HOUR, END, queue="q1", user="ann"),
    claim("b", 1, START, END, queue="q2", user="ann", namespace="t"),
]


def given(*budgets: Json) -> tuple[prices.Prices, list[prices.Problem]]:
    spec = {"currency": "EUR", "prices": [{"gpuHour": 2}], "budgets": list(budgets)}
    return prices.read([convert({"metadata": {"name": "list"}, "spec": spec}, PriceList)])


SPENT = [
    ({"queue": "q1", "month": 100}, 20.0, ""),
    ({"queue": "q1", "month": 25}, 20.0, "nearly spent"),
    ({"queue": "q1", "month": 25, "warnAt": 0.9}, 20.0, ""),
    ({"queue": "q1", "month": 19}, 20.0, "overspent"),
    ({"user": "ann", "month": 100}, 40.0, ""),
    ({"namespace": "t", "month": 100}, 20.0, ""),
    ({"queue": "none", "month": 1}, 0.0, ""),
    ({"month": 79}, 80.0, "overspent"),
]


@pytest.mark.parametrize(("budget", "spent", "state"), SPENT)
def test_a_budget_counts_its_own_month_and_subject(budget: Json, spent: float, state: str) -> None:
    known, wrong = given(budget)
    assert not wrong
    (only,) = standings([NODE], CLAIMS, known, end=END)
    assert (only.spent, only.state, only.month) == (pytest.approx(spent), state, "2026-11")


def test_at_the_months_end_the_month_that_ended_counts() -> None:
    known, _ = given({"queue": "q1", "month": 100})
    (only,) = standings([NODE], CLAIMS, known, end=START)
    assert (only.month, only.spent) == ("2026-10", pytest.approx(100.0))


BAD = [
    ([{"month": 0}], "list: spec.budgets[0].month", "more than 0"),
    ([{"month": float("inf")}], "list: spec.budgets[0].month", "more than 0"),
    ([{"month": 5, "queue": "q", "user": "u"}], "list: spec.budgets[0]", "at most one"),
    ([{"month": 5}, {"month": 6}], "list: spec.budgets[1]", "same as list: spec.budgets[0]"),
]


@pytest.mark.parametrize(("budgets", "field", "words"), BAD)
def test_bad_budgets_are_refused_by_field(budgets: list[Json], field: str, words: str) -> None:
    _, wrong = given(*budgets)
    assert [one.field for one in wrong] == [field]
    assert words in str(wrong[0])


def test_the_report_shows_budgets_as_text() -> None:
    name = "<b>&q"
    known, _ = given({"queue": name, "month": 5}, {"month": 50})
    held = [claim("a", 0, START, END, queue=name)]
    found = report([NODE], held, known, start=START, end=END)
    tree = json.loads(json.dumps(shown.tree(found)))
    assert [(one["state"], one["ratio"]) for one in tree["budgets"]] == [
        ("overspent", 4.0),
        ("overspent", 1.6),
    ]
    text = shown.page(found)
    assert "queue &lt;b&gt;&amp;q" in text and name not in text
