"""What pools get for a queue costs no more than its budget."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.drawn import add, draw, draw_gang, queue
from tests.support.pooled import bought, pool

from lockstep.pools.core.growth import Growth, grow
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.state.cluster import Cluster

NOW = 1_000_000.0
EMPTY = "s/l: old:8?"
Slots = dict[str, dict[str, list[int]]]
Queues = dict[str, dict[str, Any]]
TREE: Queues = {"all": {"hourlyBudget": 40}, "q": {"parent": "all"}, "r": {"parent": "all"}}


def grown(gangs: list[str], queues: Queues, *pools: str, **more: Any) -> Growth:
    cluster = draw(Cluster(), EMPTY)
    for name, spec in queues.items():
        cluster.set_queue(queue(name, **spec))
    for number, text in enumerate(gangs):
        drawing, _, where = text.partition(" in ")
        created = f"2026-01-01T00:00:0{number}Z"
        add(cluster, draw_gang(drawing, created=created, queue=where or "q"))
    return grow(cluster, [pool(text, **more) for text in pools], NOW)


CASES: list[tuple[str, Queues, list[str], str, Slots]] = [
    # the rule, the queues, the gangs in order, the pool, what is got
    ("up to the budget", {"q": {"hourlyBudget": 40}}, ["a: 2x8"], "p: 8x8 price=20",
     {"a": {"p": [0, 1]}}),
    ("none beyond it", {"q": {"hourlyBudget": 40}}, ["a: 3x8"], "p: 8x8 price=20", {}),
    ("gangs share it", {"q": {"hourlyBudget": 40}}, ["a: 1x8", "b: 1x8", "c: 1x8"],
     "p: 8x8 price=20", {"a": {"p": [0]}, "b": {"p": [1]}}),
    ("other queues are free", {"q": {"hourlyBudget": 0}, "r": {}}, ["a: 1x8", "b: 1x8 in r"],
     "p: 8x8 price=20", {"b": {"p": [0]}}),
    ("parts pay from their parent's", TREE, ["a: 1x8", "b: 1x8 in r", "c: 1x8"],
     "p: 8x8 price=20", {"a": {"p": [0]}, "b": {"p": [1]}}),
    ("none of a pool without a price", {"q": {"hourlyBudget": 40}}, ["a: 1x8"], "p: 8x8", {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "queues", "gangs", "drawing", "expected"), CASES, ids=[case[0] for case in CASES]
)
def test_budgets(
    rule: str, queues: Queues, gangs: list[str], drawing: str, expected: Slots
) -> None:
    assert bought(grown(gangs, queues, drawing)) == expected, rule


def test_nodes_on_their_way_are_paid_for() -> None:
    holder = {"kind": "Gang", "namespace": "default", "name": "b", "uid": "b"}
    request = {"id": "r", "slots": [0, 1], "at": "1970-01-12T13:46:40Z", "holders": [holder]}
    found = grown(
        ["a: 3x8", "b: 2x8"],
        {"q": {"hourlyBudget": 60}},
        "p: 8x8 price=20",
        status={"requests": [{**request, "sent": True}]},
    )
    assert bought(found) == {"a": {"p": [2]}}
    assert (
        grown(
            ["a: 4x8", "b: 2x8"],
            {"q": {"hourlyBudget": 60}},
            "p: 8x8 price=20",
            status={"requests": [{**request, "sent": True}]},
        ).purchases
        == []
    )


def test_the_gang_is_told_which_queue_may_not_pay() -> None:
    found = grown(["a: 1x8", "b: 2x8"], {"q": {"hourlyBudget": 50}}, "p: 8x8 price=20")
    assert found.refused[WorkloadKey("Gang", "default", "b")] == (
        "queue q pays 20.00 an hour for nodes of pools, and 40.00 more would pass its "
        "hourlyBudget of 50"
    )
