"""By stated run times that are true whoever is promised quota starts by then at the latest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.simulated_jobs import job, simulate

from lockstep.api.queue import Queue
from lockstep.nodes.simulated.spec import parse
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.sim.engine.options import Options
from lockstep.sim.input.initial_cluster import initial_cluster_of, view

GPU = "nvidia.com/gpu"
TREES: tuple[dict[str, str | None], ...] = (
    {"q": None, "r": None},
    {"org": None, "q": "org", "r": "org", "t": None},
    {"org": None, "q": "org", "firm": "org", "r": "firm", "t": "firm"},
)
AMPLE = "16x8"
"""Room for all that is drawn: what is lacking is quota."""

Drawn = tuple[list[Queue], list[dict[str, Any]]]


class Witness:
    """Sees what each decision of a scheduler has promised."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}

    def see(self, decider: Decider, now: float) -> None:
        cluster = decider.cluster
        for key, workload in cluster.workloads.items():
            if workload.bound:
                self.told.pop(key.name, None)
        for held in cluster.reservations.quota.values():
            before = self.told.setdefault(held.workload.name, held.at)
            assert held.at <= before, f"{held.workload.name} was told another time"
        late = [name for name, at in self.told.items() if now > at + 1]
        assert not late, f"{late} have not started at {now}"
        for account in cluster.ledger.accounts.values():
            for name, ceiling in account.ceilings.items():
                assert account.used.get(name, 0) <= ceiling.amount


@st.composite
def scenarios(draw: st.DrawFn) -> Drawn:
    tree = draw(st.sampled_from(TREES))
    queues = []
    for name, parent in tree.items():
        spec: dict[str, Any] = {"parent": parent} if parent else {}
        most = draw(st.sampled_from([None, 8, 12, 16]))
        spec |= {"limit": {GPU: most}} if most is not None else {}
        spec["weight"] = draw(st.sampled_from([1, 5]))
        queues.append(view({"metadata": {"name": name}, "spec": spec}, Queue))
    jobs = [
        job(
            f"j{number}",
            f"{draw(st.integers(1, 4))}x{draw(st.sampled_from(['1', '2', '4', '50%']))}",
            at=draw(st.sampled_from([0, 0, 10, 30, 100])),
            runs=draw(st.sampled_from([30, 50, 70, 71.5, 300])),
            queue=draw(st.sampled_from(sorted(tree))),
        )
        for number in range(draw(st.integers(4, 14)))
    ]
    return queues, jobs


def drawn(limit: int, *jobs: tuple[str, str, str, float, float]) -> Drawn:
    """Return gangs, each with its size, queue, arrival and run time, under one limit."""
    specs: dict[str, dict[str, Any]] = {
        name: {"parent": parent} if parent else {"limit": {GPU: limit}}
        for name, parent in TREES[2].items()
    }
    queues = [
        view({"metadata": {"name": name}, "spec": spec}, Queue) for name, spec in specs.items()
    ]
    return queues, [job(n, size, at=at, runs=runs, queue=q) for n, size, q, at, runs in jobs]


FOLLOWS_ONE_THAT_STARTS_A_MOMENT_LATE = drawn(
    12,
    ("j0", "2x1", "firm", 0, 30),
    ("j1", "3x2", "org", 0, 300),
    *((f"j{number}", "1x1", "firm", 0, 30) for number in (2, 3, 5, 6, 7, 8)),
    ("j4", "3x2", "q", 10, 30),
    ("j9", "1x1", "org", 0, 30),
)


@example(FOLLOWS_ONE_THAT_STARTS_A_MOMENT_LATE)
@settings(max_examples=examples(40), deadline=None)
@given(scenarios())
def test_whoever_is_promised_quota_starts_in_time(scenario):
    queues, jobs = scenario
    world, witness, decide = initial_cluster_of(parse(AMPLE)), Witness(), Decider.decide
    world.queues = queues

    def seen(decider: Decider, now: float, **more: Any) -> CycleResult:
        result = decide(decider, now, **more)
        witness.see(decider, now)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decider, "decide", seen)
        simulate(world, *jobs, options=Options(until=5000, rounds=60))
