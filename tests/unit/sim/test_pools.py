"""Node pools in simulated time: what comes, what goes, what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import node
from tests.support.examples import examples
from tests.support.pooled import node_pool
from tests.support.simulated_jobs import job

from lockstep.api.price_list import PriceList
from lockstep.api.queue import Queue
from lockstep.api.selectors import parse_labels
from lockstep.api.wire import convert
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import InitialCluster, initial_cluster_of
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.result.record import Result

HOUR = 3600.0
SPOT = parse_labels("pay=spot")


def run(world: InitialCluster, *jobs: Any, **more: Any) -> tuple[Result, Simulation]:
    simulation = Simulation(world, read_jobs(jobs, world), Options(**more))
    return simulation.run(), simulation


def test_nodes_are_paid_from_their_arrival_until_they_go() -> None:
    world = InitialCluster(pools=[node_pool("p: 8x8 price=10 arrival=5m idle=10m")])
    result, simulation = run(world, job("a", "4x8", runs=HOUR))
    bill = result.bills["p"]
    assert (bill.bought, bill.most) == (4, 4)
    assert bill.cost == pytest.approx(4 * 10 * (HOUR + 600 + 2) / HOUR, rel=0.01)
    assert result.lives.column("started")[0] == 300
    assert not simulation.cluster.table.rows


def test_nodes_are_used_again_before_they_are_idle_for_long() -> None:
    world = InitialCluster(pools=[node_pool("p: 8x8 price=10 arrival=5m idle=10m")])
    result, _ = run(world, job("a", "4x8", runs=HOUR), job("b", "4x8", at=HOUR + 600, runs=HOUR))
    assert result.bills["p"].bought == 4


def test_prices_come_from_the_lists() -> None:
    listed = {"metadata": {"name": "l"}, "spec": {"currency": "EUR", "prices": [{"gpuHour": 2.0}]}}
    world = initial_cluster_of(parse("1x8"))
    world.pools = [node_pool("p: 8x8 arrival=0s idle=0s")]
    world.price_lists = [convert(listed, PriceList)]
    result, _ = run(world, job("a", "1x8", runs=HOUR), job("b", "1x8", runs=HOUR))
    assert result.bills["fixed"].cost == pytest.approx(16, rel=0.01)
    assert result.bills["p"].cost == pytest.approx(16, rel=0.01)


def test_a_reclaimed_node_is_bought_again() -> None:
    world = InitialCluster(pools=[node_pool("p: 4x8 spot price=1 arrival=1m idle=1m")])
    faults = Faults(spot=SPOT, spot_mtbf=0.5, spot_return=1.0, checkpoint_interval=60.0)
    result, simulation = run(world, job("a", "2x8", runs=4 * HOUR), faults=faults)
    assert result.bills["p"].reclaimed
    assert result.lives.column("ended")[0] > 4 * HOUR
    assert not simulation.cluster.table.rows


SIZES = st.sampled_from(["1x8", "2x8", "4x8", "3x2", "5x1", "6x8"])
JOBS = st.lists(
    st.tuples(SIZES, st.integers(0, 3000), st.integers(1, 2000), st.booleans()), max_size=12
)


@settings(max_examples=examples(40), deadline=None)
@given(
    jobs=JOBS,
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 2)),
    limit=st.sampled_from([16, 40, 100]),
    budget=st.sampled_from([10, 30, 200]),
    mtbf=st.sampled_from([0.3, float("inf")]),
)
def test_bounds_hold_whatever_comes_and_fails(
    jobs: list[tuple[str, int, int, bool]],
    sizes: tuple[int, int],
    limit: int,
    budget: int,
    mtbf: float,
) -> None:
    """Quota, budget and bounds are never passed; at the end the pools are at their minimum."""
    standing, least = sizes
    pools = [
        node_pool(f"p: {least}..6x8 leaf=4 price=5 budget={budget} arrival=1m idle=2m"),
        node_pool("q: 4x8 price=9 spot arrival=2m idle=1m"),
    ]
    world = InitialCluster(
        nodes={f"n{i}": node(f"n{i}", labels={"spine": "s", "leaf": "l"}) for i in range(standing)},
        queues=[convert({"metadata": {"name": "default"}, "spec": spec(limit)}, Queue)],
        pools=pools,
    )
    wish = {"topology": {"required": "leaf"}}
    made = [
        job(f"j{i}", size, at=at, runs=runs, **(wish if close else {}))
        for i, (size, at, runs, close) in enumerate(jobs)
    ]
    faults = Faults(spot=SPOT, spot_mtbf=mtbf, spot_return=1.0)
    simulation = Simulation(world, read_jobs(made, world), Options(faults=faults, until=90_000))
    table = simulation.cluster.table

    def watch() -> bool:
        names = [name.partition("-")[0] for name in table.rows]
        assert names.count("p") <= min(6, budget // 5)
        assert names.count("q") <= 4
        used = sum(m.shape.gpus for m in simulation.cluster.pods.values() if m.node)
        assert used <= limit
        return False

    result = simulation.run(stop=watch)
    assert not any(name.endswith("~") for name in table.rows)
    if result.end < 90_000 and jobs:
        names = [name.partition("-")[0] for name in table.rows]
        assert names.count("p") == min(least, budget // 5)
        assert names.count("q") == 0


def spec(limit: int) -> dict[str, Any]:
    return {"limit": {"nvidia.com/gpu": limit}}
