"""A month of 100,000 GPUs through the simulator."""

from __future__ import annotations

import time

from bench.figure import Figure
from bench.support.month import DAY, GPUS_PER_NODE, JOBS_PER_GPU_DAY, NODE_MTBF_HOURS, month
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.faults import Faults
from lockstep.sim.input.initial_cluster import initial_cluster_of

SLOW = True
NODES, DAYS, SEED = 12_500, 30.0, 0
PERIOD = 10.0
"""Seconds of simulated time between decisions."""


def run() -> list[Figure]:
    gpus = NODES * GPUS_PER_NODE
    world = initial_cluster_of(
        parse(f"{NODES}x{GPUS_PER_NODE},nodes-per-leaf=32,leaves-per-spine=16")
    )
    options = Options(
        seed=SEED,
        until=DAYS * DAY,
        period=PERIOD,
        faults=Faults(node_mtbf=NODE_MTBF_HOURS),
    )
    start = time.perf_counter()
    result = Simulation(world, month(gpus, DAYS, SEED), options).run()
    wall = time.perf_counter() - start
    name = f"{gpus:,} GPUs, {DAYS:g} days"
    jobs = int(JOBS_PER_GPU_DAY * gpus * DAYS)
    used = 100 * result.total.used / result.total.capacity
    return [
        Figure(f"{name}: simulated", wall / 60, "min", "lower", limit=30),
        Figure(f"{name}: jobs", jobs, "jobs"),
        Figure(f"{name}: allocated", used, "%"),
    ]
