"""Budgets are counted by month and subject, and warn in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.costs import HOUR, claim

from lockstep.api import timestamp
from lockstep.api.gang import Gang
from lockstep.api.names import HELD_ANNOTATION
from lockstep.api.price_list import PriceList
from lockstep.api.team import Team
from lockstep.api.wire import convert
from lockstep.insight.budget_hold import BudgetHold
from lockstep.insight.budget_watch import BudgetWatch
from lockstep.insight.cost import prices
from lockstep.insight.cost.budgets import held, standings
from lockstep.insight.history.records import NodeSpan
from lockstep.insight.history.store import Store
from lockstep.insight.report import rendering
from lockstep.insight.report.summing import report

Json = dict[str, Any]
START = timestamp.parse("2026-11-01T00:00:00Z")
END = START + 10 * HOUR
NODE = NodeSpan("nu", "n", 4, START - 50 * HOUR)
CLAIMS = [
    claim("a", 0, START - 50 * HOUR, END, queue="q1", user="ann"),
    claim("b", 1, START, END, queue="q2", user="ann", namespace="t"),
]


def listed(*budgets: Json) -> PriceList:
    spec = {"currency": "EUR", "prices": [{"gpuHour": 2}], "budgets": list(budgets)}
    return convert({"metadata": {"name": "list"}, "spec": spec}, PriceList)


def given(*budgets: Json) -> tuple[prices.Prices, list[prices.Problem]]:
    return prices.read([listed(*budgets)])


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
    tree = json.loads(json.dumps(rendering.tree(found)))
    assert [(one["state"], one["ratio"]) for one in tree["budgets"]] == [
        ("overspent", 4.0),
        ("overspent", 1.6),
    ]
    text = rendering.page(found)
    assert "queue &lt;b&gt;&amp;q" in text and name not in text


def _told(watch: BudgetWatch) -> dict[tuple[str, str, str], float]:
    return {
        (family.name.removeprefix("lockstep_budget_"), one.labels["kind"], one.labels["name"]): (
            one.value
        )
        for family in watch.collect()
        for one in family.samples
    }


async def test_budgets_are_in_the_metrics_as_counted_last(tmp_path: Path) -> None:
    store = Store(tmp_path / "usage.db")
    store.put(CLAIMS, [NODE])
    lists = [listed({"queue": "q1", "month": 40}, {"month": 100, "warnAt": 0.5})]
    watch = BudgetWatch(lists, store, lambda: END)
    assert _told(watch) == {}
    await watch.count()
    expected = {
        ("spent_ratio", "queue", "q1"): 0.5,
        ("warn_ratio", "queue", "q1"): 0.8,
        ("spent_ratio", "cluster", ""): 0.8,
        ("warn_ratio", "cluster", ""): 0.5,
    }
    assert _told(watch) == pytest.approx(expected)
    lists.append(listed({"month": 7}))
    await watch.count()
    assert _told(watch) == {}
    store.close()


HELD = [
    # budget, spent, queue, namespace and user of the gang, whether it waits
    ({"queue": "q1", "month": 19, "hold": True}, ("q1", "any", "any"), True),
    ({"queue": "q1", "month": 19, "hold": True}, ("q2", "any", "any"), False),
    ({"queue": "q1", "month": 19}, ("q1", "any", "any"), False),
    ({"queue": "q1", "month": 20, "hold": True}, ("q1", "any", "any"), False),
    ({"namespace": "t", "month": 1, "hold": True}, ("any", "t", "any"), True),
    ({"user": "ann", "month": 1, "hold": True}, ("any", "any", "ann"), True),
    ({"user": "ann", "month": 1, "hold": True}, ("any", "any", ""), False),
    ({"month": 1, "hold": True}, ("any", "any", "any"), True),
]


@pytest.mark.parametrize(("budget", "gang", "waits"), HELD)
def test_a_spent_budget_holds_its_own_gangs(
    budget: Json, gang: tuple[str, str, str], waits: bool
) -> None:
    known, _ = given(budget)
    said = held(*gang, standings([NODE], CLAIMS, known, end=END))
    assert bool(said) == waits
    if waits:
        assert said.startswith("budget: the ") and "for 2026-11 are spent" in said


class Patched:
    """A fake client that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def patch(self, _: Any, name: str, body: Json, __: str) -> None:
        self.told.append(body["metadata"]["annotations"][HELD_ANNOTATION])


async def test_a_gang_is_held_until_its_budget_allows_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "usage.db")
    store.put(CLAIMS, [NODE])
    lists = [listed({"queue": "q1", "month": 19, "hold": True})]
    watch, client = BudgetWatch(lists, store, lambda: END), Patched()
    gangs: dict[Any, Gang] = {}
    hold = BudgetHold(client, gangs, watch)  # type: ignore[arg-type]

    async def look(said: str = "", placed: str | None = None) -> list[Any]:
        about = {"name": "g", "namespace": "t", "annotations": {HELD_ANNOTATION: said}}
        tree = {"metadata": about, "spec": {"queue": "q1"}, "status": {"placedAt": placed}}
        gangs["t", "g"] = convert(tree, Gang)
        client.told.clear()
        await hold.reconcile(("t", "g"))
        return client.told

    hold.gangs = Held(gangs)  # type: ignore[assignment]
    assert await look("budget: of an earlier life") == [], "nothing is let go before it is known"
    await watch.count()
    (said,) = await look()
    assert said.startswith("budget: ")
    assert await look(said) == []
    assert await look("by the administrator") == []
    assert await look(placed="2026-11-01T00:00:00Z") == []
    lists[0] = listed({"queue": "q1", "month": 50, "hold": True})
    await watch.count()
    assert await look(said) == [None]
    store.close()


class Held:
    """A fake cache of gangs."""

    def __init__(self, gangs: dict[Any, Gang]) -> None:
        self._gangs = gangs

    def get(self, *key: str) -> Gang | None:
        return self._gangs.get(key)


@pytest.mark.parametrize(("month", "waits"), [(19, True), (21, False)])
def test_a_teams_budget_counts_all_its_namespaces(month: float, waits: bool) -> None:
    spec = {"namespaces": ["t", "other"], "budget": {"month": month, "hold": True}}
    vision = convert({"metadata": {"name": "vision"}, "spec": spec}, Team)
    known, _ = given()
    (only,) = standings([NODE], CLAIMS, known, end=END, teams=[vision])
    assert (only.subject, only.spent) == ("team vision", pytest.approx(20.0))
    assert bool(held("any", "t", "any", [only])) == waits
    assert not held("any", "s", "any", [only])
