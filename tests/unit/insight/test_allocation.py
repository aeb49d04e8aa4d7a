"""Bills in OpenCost's shape sum up to the same money."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.costs import HOUR, claim, known

from lockstep.api import timestamp
from lockstep.insight.cost import billing
from lockstep.insight.cost.allocation import IDLE, allocations
from lockstep.insight.cost.prices import Prices
from lockstep.insight.history.records import NodeSpan

NEWYEAR = timestamp.parse("2027-01-01T00:00:00Z")
START = NEWYEAR - 2 * HOUR
NODE = NodeSpan("nu", "n", 2, START)
CLAIMS = [
    claim("a", 0, START, NEWYEAR, queue="q1", user="ann"),
    claim("b", 1, START + HOUR, NEWYEAR + HOUR, queue="q2", share=0.5),
]


def answer(*by: str, prices: Prices | None = None) -> list[dict[str, Any]]:
    given = known({"gpuHour": 4}) if prices is None else prices
    found = allocations([NODE], CLAIMS, given, by=by, start=0, end=NEWYEAR + 2 * HOUR)
    assert found["code"] == 200
    data: list[dict[str, Any]] = found["data"]
    return data


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (["job"], ["s/a", "s/b", IDLE]),
        (["namespace"], ["s", IDLE]),
        (["queue"], ["q1", "q2", IDLE]),
        (["user"], [billing.UNKNOWN, "ann", IDLE]),
    ],
)
def test_allocations_are_named_by_their_groups(by: list[str], names: list[str]) -> None:
    (only,) = answer(*by)
    assert list(only) == names
    assert sum(one["totalCost"] for one in only.values()) == pytest.approx(4 * 2 * 4)


def test_an_allocation_has_opencost_fields() -> None:
    one = answer("job")[0]["s/b"]
    assert one["properties"] == {
        "namespace": "s",
        "node": "n",
        "pod": "b",
        "controller": "b",
        "controllerKind": "trainingjob",
        "labels": {"queue": "q2"},
    }
    assert (one["minutes"], one["gpuCount"], one["gpuHours"]) == (120, 0.5, 1.0)
    assert (one["gpuCost"], one["cpuCost"], one["totalCost"]) == (4.0, 0.0, 4.0)
    assert one["start"] == timestamp.show(START + HOUR)
    assert one["window"] == {
        "start": timestamp.show(START),
        "end": timestamp.show(NEWYEAR + 2 * HOUR),
    }


def test_properties_in_which_claims_differ_are_left_out() -> None:
    assert answer("namespace")[0]["s"]["properties"] == {"namespace": "s", "node": "n"}


def test_by_month_each_month_is_a_set() -> None:
    old, new = answer("job", "month")
    assert (list(old), list(new)) == (["s/a", "s/b", IDLE], ["s/b", IDLE])
    assert old["s/b"]["end"] == new["s/b"]["start"] == timestamp.show(NEWYEAR)


def test_without_records_there_is_no_set() -> None:
    assert allocations([], [], known(), by=["job"], start=0, end=HOUR)["data"] == []


def test_users_with_hostile_names_keep_their_own_money() -> None:
    names = [IDLE, "a/b", "a%2Fb"]
    held = [claim(f"u{i}", i, 0, HOUR, user=name) for i, name in enumerate(names)]
    node = NodeSpan("nu", "n", 4, 0)
    (only,) = allocations([node], held, known({"gpuHour": 1}), by=["user"], start=0, end=HOUR)[
        "data"
    ]
    assert sorted(only) == sorted(["%5F_idle__", "a%2Fb", "a%252Fb", IDLE])
    assert [one["totalCost"] for one in only.values()] == [1.0] * 4
