"""The figures of a simulation: what was used, who waited, what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.topology import NO_DOMAIN
from lockstep.scheduler.core.util.array_types import FloatArray
from lockstep.sim.result.job_records import JobRecords
from lockstep.sim.result.placements_log import PlacementsLog
from lockstep.sim.result.record import Compared, Result

MOST = (0, 1, 8, 64, 512)
CLASSES = ("no GPU", "1 GPU", "2 to 8", "9 to 64", "65 to 512", "over 512")
"""The classes of jobs by their GPUs, each up to the most of it."""
EVERYWHERE = "cluster"


def figures(result: Result, table: NodeTable, weights: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures as a tree for JSON. Percentages are of 100, times in seconds.

    ``allocation`` is the GPU time held by jobs over the GPU time of nodes that were up;
    ``pressedAllocation`` the same while a job waited. ``fragmentation`` is the part of the free GPU
    time that lay on nodes partly in use. ``fairness`` is Jain's index (1 is even, 1/n is one queue
    alone) over the GPU time of each queue whose jobs asked for GPUs, by its weight. ``goodput`` is
    the part of the held GPU time whose work was kept. ``span`` counts jobs of several pods by the
    narrowest tier that held them at their start. ``bill`` tells by node pool (``fixed``: the nodes
    that are always there) what it cost, by the prices of the input. ``rearrangements`` counts jobs
    for which others moved, ``moves`` how often jobs moved, ``movedGpuHours`` what they lost by it.
    ``communicationCost`` tells of the jobs that state their parallelism the mean seconds of
    communication a step, the same at the best place that there is (``ideal``), and by how much they
    are above it.
    """
    total, lives, column = result.total, result.lives, result.lives.column
    gave_up = sum(life.gave_up is not None for life in lives.waiting)
    return {
        "seconds": round(result.end, 3),
        "jobs": len(lives),
        "ended": int((~np.isnan(column("ended"))).sum()),
        "gaveUp": gave_up,
        "stillWaiting": len(lives.waiting) - gave_up,
        "allocation": _percent(total.used, total.capacity),
        "pressedAllocation": _percent(total.pressed_used, total.pressed_capacity),
        "fragmentation": _percent(total.stranded, total.free),
        **_waits(lives),
        "fairness": fairness(_use_by_queue(result), weights),
        "gpuHoursByQueue": {
            queue: round(used / 3600, 3) for queue, used in sorted(result.queue_use.items())
        },
        "communicationCost": communication_cost(result.communication),
        **_disturbances(result),
        "bill": {
            name: {
                "nodeHours": round(bill.node_hours, 3),
                "cost": round(bill.cost, 2),
                "bought": bill.bought,
                "most": bill.most,
                "reclaimed": bill.reclaimed,
            }
            for name, bill in sorted(result.bills.items())
        },
        "span": spans(result.stays, table),
        "decisions": result.decisions,
    }


def _waits(lives: JobRecords) -> dict[str, Any]:
    """Return how long jobs waited: all of them, those of each queue, those of each class."""
    column, queues = lives.column, lives.queues
    waited = column("started") - column("arrival")
    by_name = sorted(range(len(queues)), key=queues.__getitem__)
    return {
        "waits": waits(waited),
        "waitsByQueue": _by(column("queue"), queues, by_name, waited),
        "waitsByClass": _by(size_classes(column("gpus")), CLASSES, range(len(CLASSES)), waited),
    }


def _use_by_queue(result: Result) -> dict[str, float]:
    """Return the GPU-seconds of each queue whose jobs asked for GPUs, those that got none too."""
    lives, use = result.lives, result.queue_use
    asked = np.unique(lives.column("queue")[lives.column("gpus") > 0])
    return {queue: use.get(queue, 0.0) for queue in map(lives.queues.__getitem__, asked)}


def _disturbances(result: Result) -> dict[str, Any]:
    """Return how often jobs were disturbed, and what they lost by it."""
    column = result.lives.column
    # Shares of memory and of compute may lie on one card: what jobs hold is not what cards miss.
    held = sum(result.queue_use.values())
    return {
        "preemptions": int(column("preemptions").sum()),
        "rearrangements": len(result.rearrangements),
        "moves": int(column("moves").sum()),
        "movedGpuHours": round(sum(one.price for one in result.rearrangements) / 3600, 3),
        "restarts": int(column("restarts").sum()),
        "nodeFaults": result.node_faults,
        "goodput": _percent(float(column("useful").sum()), held),
        "lostGpuHours": round(float(column("lost").sum()) / 3600, 3),
    }


def size_classes(gpus: FloatArray) -> NDArray[np.intp]:
    """Return the number of the class of each job by its GPUs."""
    return np.searchsorted(MOST, gpus)


def waits(waited: FloatArray) -> dict[str, Any]:
    """Return how long jobs waited from their arrival to their first start, given in seconds.

    Those that never started (NaN) are counted by themselves and in no mean; where none did the
    times are None.
    """
    found = waited[~np.isnan(waited)]
    times: dict[str, float | None] = dict.fromkeys(("mean", "p50", "p95", "max"))
    if len(found):
        p50, p95 = np.percentile(found, (50, 95))
        times = {"mean": found.mean(), "p50": p50, "p95": p95, "max": found.max()}
    return {
        "jobs": len(waited),
        "neverStarted": len(waited) - len(found),
        **{
            name: None if value is None else round(float(value), 3) for name, value in times.items()
        },
    }


def _by(
    of: NDArray[Any], names: Sequence[str], order: Iterable[int], waited: FloatArray
) -> dict[str, Any]:
    """Return the waits of the jobs by their number *of* members, in the order of those numbers."""
    return {names[number]: waits(waited[of == number]) for number in order if number in of}


def fairness(use: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return Jain's index over what each queue used by its weight; 1.0 where only one did.

    Source: Jain, Chiu, Hawe: A Quantitative Measure of Fairness (DEC-TR-301, 1984).
    """
    shares = np.array([used / max(weights.get(q, 1), 1e-9) for q, used in use.items()])
    if not len(shares) or not shares.any():
        return 1.0
    return round(float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())), 4)


def communication_cost(found: Sequence[Compared]) -> dict[str, Any]:
    """Return what the jobs that state their parallelism pay, beside what they would at best."""
    if not found:
        return {"jobs": 0}
    ratios = np.array([one.ratio for one in found])
    return {
        "jobs": len(found),
        "seconds": round(float(np.mean([one.seconds for one in found])), 6),
        "ideal": round(float(np.mean([one.ideal for one in found])), 6),
        "ratio": round(float(ratios.mean()), 4),
        "worst": round(float(ratios.max()), 4),
    }


def spans(stays: PlacementsLog, table: NodeTable) -> dict[str, int]:
    """Return by tier how many jobs of several pods it held, narrowest first."""
    tiers = table.tiers.indices
    found = {tier.name: 0 for tier in reversed(tiers)} | {EVERYWHERE: 0}
    row_of = np.array([table.rows.get(node, -1) for node in stays.nodes], np.intp)
    for nodes in stays.first():
        rows = row_of[nodes]
        rows = rows[rows >= 0]
        if len(rows) < 2:
            continue
        held = EVERYWHERE
        for tier in reversed(tiers):
            ids = tier.ids[rows]
            if ids[0] != NO_DOMAIN and (ids == ids[0]).all():
                held = tier.name
                break
        found[held] += 1
    return found


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0
