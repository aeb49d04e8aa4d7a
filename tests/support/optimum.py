"""Small random layout tasks, and the true optimum of each by OR-tools' CP-SAT."""

from __future__ import annotations

import random

import numpy as np
from ortools.sat.python import cp_model

from lockstep.api.parallelism import Model, Parallelism
from lockstep.scheduler.core.ranks.collectives import collectives, grids
from lockstep.scheduler.core.ranks.communication_cost import Links, Talk, cost
from lockstep.scheduler.core.ranks.rank_mapping import Slots, Task

SPLITS = [
    # tensor, context, expert, data, pipeline, ranks a workload
    (8, 1, 1, 2, 3, 8),
    (8, 1, 1, 4, 2, 8),
    (8, 1, 1, 3, 3, 8),
    (8, 2, 1, 2, 2, 8),
    (8, 1, 2, 4, 2, 8),
    (4, 1, 1, 4, 3, 8),
    (4, 1, 1, 4, 2, 4),
    (2, 2, 2, 4, 2, 8),
    (1, 1, 1, 10, 1, 1),
    (1, 1, 1, 3, 4, 1),
    (2, 1, 1, 6, 2, 2),
]
ORDERS = ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-pp-dp"]


def random_task(seed: int) -> Task:
    """Build a job of 6 to 12 workloads and a network with a bit more room than that."""
    chance = random.Random(seed)  # noqa: S311
    tensor, context, expert, data, pipeline, ranks = chance.choice(SPLITS)
    order = chance.choice(ORDERS if context == expert == 1 else ORDERS[:2])
    model = Model(
        micro_batches=chance.choice([4, 16, 64, 256]),
        parameters=int(10 ** chance.uniform(9.5, 11.5)),
    )
    split = Parallelism(
        tensor=tensor, context=context, expert=expert, pipeline=pipeline, order=order, model=model
    )
    world = tensor * context * data * pipeline
    workloads = world // ranks
    leaves, room = [], 0
    while room < workloads + chance.choice([0, 0, 2]):
        size = chance.randint(1, 6)
        leaves.append((chance.randint(0, 1), size))
        room += size
    leaves.sort()
    ids = np.array(
        [
            [spine for spine, size in leaves for _ in range(size)],
            [number for number, (_, size) in enumerate(leaves) for _ in range(size)],
            list(range(room)),
        ]
    )
    unit_of = np.arange(world) // ranks
    talk = Talk(workloads, collectives(split, world), unit_of)
    start = np.array(chance.sample(range(room), workloads))
    return Task(
        talk=talk,
        kind=np.zeros(workloads, dtype=np.int64),
        keys=[
            axis
            for grid in grids(split, world)
            for axis in grid.coordinates(np.arange(workloads) * ranks).values()
        ],
        slots=Slots(ids, np.zeros(room, dtype=np.int64)),
        links=Links(1 / np.array([12.5e9, 25e9, 50e9, 450e9]), np.array([2e-5, 1e-5, 5e-6])),
        start=start,
        fixed=np.zeros(workloads, dtype=bool),
    )


def optimum(task: Task) -> float:
    """Return the least seconds that any placement of the workloads on the slots costs."""
    model, talk, links = cp_model.CpModel(), task.talk, task.links
    ids = task.slots.ids
    leaves = np.unique(ids[1])
    at = {(u, d): model.new_bool_var("") for u in range(talk.units) for d in leaves}
    for workload in range(talk.units):
        model.add_exactly_one(at[workload, d] for d in leaves)
    for leaf in leaves:
        model.add(sum(at[u, leaf] for u in range(talk.units)) <= int((ids[1] == leaf).sum()))
    terms, scale = [], 1e12
    for level in (0, 1):
        domains = np.unique(ids[level])
        inside = {d: np.unique(ids[1][ids[level] == d]) for d in domains}
        for number, members in enumerate(talk.edges):
            touched = [model.new_bool_var("") for _ in domains]
            for var, domain in zip(touched, domains, strict=True):
                for workload in members:
                    for leaf in inside[domain]:
                        model.add_implication(at[workload, leaf], var)
            several = model.new_bool_var("")
            hops = model.new_int_var(0, len(domains), "")
            model.add(sum(touched) <= 1 + several * (len(domains) - 1))
            model.add(hops >= sum(touched)).only_enforce_if(several)
            step = talk.volume[number] * links.surcharge[level]
            terms.append(int(scale * step) * several)
            terms.append(int(scale * talk.calls[number] * links.hop[level]) * hops)
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 20
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, solver.status_name(status)
    place, used = np.zeros(talk.units, dtype=np.int64), set()
    for workload in range(talk.units):
        leaf = next(d for d in leaves if solver.value(at[workload, d]))
        slot = next(int(s) for s in np.flatnonzero(ids[1] == leaf) if int(s) not in used)
        used.add(slot)
        place[workload] = slot
    return cost(talk, ids[:, place], links)
