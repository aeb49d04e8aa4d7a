"""Past use, summed up by the scheduler event by event, is what the placements say it is."""

from __future__ import annotations

import math
import random

import pytest
from tests.support.simulated_jobs import job, world

from lockstep.api.names import API_VERSION, GPU
from lockstep.nodes.simulated.fleet import fleet, node_object
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.jobs import read_jobs
from lockstep.sim.result.placements_log import Stay

HALF_LIFE = 600.0
QUEUES = ("a", "b", "c")


def objects(kind, items):
    return [{"apiVersion": API_VERSION, "kind": kind, **item} for item in items]


def average(stays: list[Stay], moment: float) -> float:
    """Return the decayed average of the GPUs held until a moment: an integral, stay by stay."""
    rate, total = math.log(2) / HALF_LIFE, 0.0
    for stay in stays:
        if stay.start < moment:
            end = moment if stay.end is None else min(stay.end, moment)
            weight = math.exp(-rate * (moment - end)) - math.exp(-rate * (moment - stay.start))
            total += len(stay.gpus) * weight
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_average_is_that_of_the_placements(seed):
    dice = random.Random(seed)  # noqa: S311 - a test, not a secret
    nodes = [
        {"apiVersion": "v1", "kind": "Node"} | node_object(node, 0.0) | {"spec": {}}
        for node in fleet(parse("3x8")).values()
    ]
    spec = {"usageHalfLife": f"{HALF_LIFE:g}s"}
    queues = objects("Queue", ({"metadata": {"name": name}, "spec": spec} for name in QUEUES))
    jobs = [
        job(f"{queue}-{number}", "1x8", at=at, runs=dice.uniform(50, 900), queue=queue)
        for queue in QUEUES
        for number in range(6)
        for at in [dice.uniform(0, 3000)]
    ]
    there = world(*nodes, *queues)
    simulation = Simulation(there, read_jobs(jobs, there), Options())
    ledger, seen = simulation.cluster.ledger, []

    def note(*_: object) -> None:
        if ledger.aged is not None:
            shown = {q: ledger.accounts[q].average.get(GPU, 0.0) / 1000 for q in QUEUES}
            seen.append((ledger.aged - there.epoch, shown))

    stays = list(simulation.run(note).stays)
    assert len(seen) > 30
    for moment, shown in seen:
        for queue in QUEUES:
            own = [stay for stay in stays if f"/{queue}-" in f"/{stay.job.rpartition('/')[2]}"]
            assert shown[queue] == pytest.approx(average(own, moment), abs=1e-3)
