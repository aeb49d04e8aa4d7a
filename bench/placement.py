"""Placement: gangs with ranks and shared GPUs, decisions alone, and layouts beside the optimum."""

from __future__ import annotations

import numpy as np
from tests.support.optimum import optimum, random_task

from bench.figure import Figure
from bench.scheduler_decisions import cluster_of, gang_of, pod_of, timed
from lockstep.api.gang import GangSpec
from lockstep.api.parallelism import Parallelism
from lockstep.api.wire import convert, to_builtins
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.rank_layout import places_of, rank_layout
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.ranks.communication_cost import cost
from lockstep.scheduler.core.ranks.rank_mapping import lay_out
from lockstep.scheduler.core.state.cluster import Cluster

ROUNDS = 3
INSTANCES = 200
KAI = 5100.0, "2 cores, 1,000 nodes, to the last bind"
SPLIT = Parallelism(tensor=8, pipeline=8)


def with_ranks(nodes: int, members: int, gpus: int) -> tuple[Cluster, Decider]:
    """A cluster that has decided before, and a gang of ranks that waits."""
    cluster = cluster_of(nodes)
    decider = Decider(cluster)
    cluster.set_gang(gang_of("first", 2, "leaf"))
    for i in range(2):
        cluster.set_pod(pod_of(f"first-{i}", gpus=4, gang="first"))
    decider.decide(0.0)
    gang = gang_of("gang", members, None)
    spec = to_builtins(gang.spec) | {"parallelism": to_builtins(SPLIT)}
    cluster.set_gang(type(gang)(metadata=gang.metadata, spec=convert(spec, GangSpec)))
    for i in range(members):
        cluster.set_pod(pod_of(f"gang-{i}", gpus=gpus, gang="gang"))
    return cluster, decider


def ranked_seconds(nodes: int, gpus: int) -> tuple[float, float]:
    """Seconds to decide a gang of 512 pods with ranks, and how much dearer a random layout is."""
    cluster, decider = with_ranks(nodes, 512, gpus)
    seconds = timed(lambda: decider.decide(0.0))
    workload = cluster.workloads[WorkloadKey("Gang", "default", "gang")]
    drawn = rank_layout(cluster, workload, places_of(workload.members))
    assert drawn is not None and len(drawn.seats) == 512
    return seconds, drawn.by_chance / drawn.seconds


def gaps() -> list[float]:
    """How far layouts are above the optimum, in what they pay outside the workloads."""
    found = []
    for seed in range(INSTANCES):
        task = random_task(seed)
        always = task.talk.inside * float(task.links.slowness[-1])
        least = optimum(task) - always
        own = cost(task.talk, task.slots.ids[:, lay_out(task)], task.links) - always
        found.append(float(own / least - 1) if least > 0 else 0.0)
    return found


def run() -> list[Figure]:
    """Measure beside the bars, the best of three."""
    figures = []
    for nodes, gpus in ((1000, 8), (1000, 1), (5000, 8), (15000, 8), (100_000, 8)):
        rounds = [ranked_seconds(nodes, gpus) for _ in range(ROUNDS)]
        best = min(seconds for seconds, _ in rounds) * 1e3
        name = f"place and lay out 512 pods x {gpus} GPUs, tp 8 pp 8, {nodes} nodes"
        limit = 50.0 if nodes <= 15000 else None
        figure = Figure(name, best, "ms", "lower", limit=limit)
        figures.append(figure.beside("KAI", *KAI) if nodes == 1000 else figure)
        figures.append(Figure("  its layout against a random one", rounds[0][1], "times"))
    above = gaps()
    figures += [
        Figure(
            "layouts above the optimum, mean of 200", float(np.mean(above)) * 100, "%", "lower", 2.0
        ),
        Figure(
            "layouts above the optimum, worst of 200", float(max(above)) * 100, "%", "lower", 10.0
        ),
    ]
    return figures
