"""What is supposed is taken back, and leaves accounts and tables as they were."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from tests.support.running import Running

from lockstep.api.names import GPU
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.placement.what_if import WhatIf
from lockstep.scheduler.core.quota.supposed import Supposed
from lockstep.scheduler.core.state.cluster import Cluster

Change = Callable[[Supposed, Cluster], None]
LENT = {
    "all": {"limit": {GPU: 16}},
    "q": {"parent": "all", "guaranteed": {GPU: 8}, "lending": "Never"},
}

CHANGES: dict[str, Change] = {
    "pods not counted": lambda world, cluster: world.uncount(pods(cluster)),
    "quota given back": lambda world, cluster: world.give_back({"q": {GPU: 8000}}),
    "quota reserved": lambda world, cluster: world.reserve({"q": {GPU: 8000}}),
    "quota spoken for": lambda world, cluster: world.promise(
        {WorkloadKey("Gang", "default", "other"): ("q", {GPU: 8000})}
    ),
    "only some pods": lambda world, cluster: world.leave_alone(pods(cluster)[:1]),
    "another limit": lambda world, cluster: world.allow(
        cluster.ledger.accounts["all"], GPU, 100_000
    ),
    "all lent": lambda world, cluster: world.lend(),
}


def pods(cluster: Cluster) -> list[Member]:
    return sorted(cluster.pods.values(), key=lambda one: one.key)


def counted(cluster: Cluster) -> Any:
    ledger = cluster.ledger
    accounts = [
        (name, one.used, one.claimed, {r: c.amount for r, c in one.ceilings.items()})
        for name, one in sorted(ledger.accounts.items())
    ]
    top = ledger.top.used, ledger.top.claimed
    return deepcopy((accounts, top, ledger.reserved, ledger.promises, ledger.keeps))


def filled() -> Cluster:
    world = Running.on("s/l: a:8 b:8", LENT)
    for name in ("x", "y"):
        world.run(f"{name}: 1x8", "q")
    return world.cluster


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_counts_until_it_is_taken_back(change):
    cluster = filled()
    before = counted(cluster)
    with Supposed(cluster.ledger) as world:
        change(world, cluster)
        assert counted(cluster) != before
    assert counted(cluster) == before


def test_rolling_back_goes_to_the_mark():
    cluster = filled()
    states, marks = [], []
    world = Supposed(cluster.ledger)
    for change in CHANGES.values():
        states.append(counted(cluster))
        marks.append(world.mark())
        change(world, cluster)
    for mark, state in reversed(list(zip(marks, states, strict=True))):
        world.rollback(mark)
        assert counted(cluster) == state


def test_an_error_takes_everything_back():
    cluster = filled()
    before = counted(cluster)
    with pytest.raises(ZeroDivisionError), Supposed(cluster.ledger) as world:
        world.uncount(pods(cluster))
        raise ZeroDivisionError
    assert counted(cluster) == before


def test_pods_that_went_are_back_after_a_rollback():
    cluster = filled()
    state = WhatIf(cluster)
    free, mark = state.table.free.copy(), state.mark()
    state.vacate(pods(cluster))
    assert not np.array_equal(state.table.free, free)
    state.rollback(mark)
    assert np.array_equal(state.table.free, free)
    assert not state.gone
