"""The figures of a simulation: what was used, who waited, what was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from lockstep.scheduler.core.nodes import NodeTable
from lockstep.scheduler.core.topology import NO_DOMAIN
from lockstep.sim.record import Compared, Life, Result, Stay

CLASSES = ((0, "no GPU"), (1, "1 GPU"), (8, "2 to 8"), (64, "9 to 64"), (512, "65 to 512"))
LARGEST = "over 512"
EVERYWHERE = "cluster"


def figures(result: Result, table: NodeTable, weights: Mapping[str, int]) -> dict[str, Any]:
    """Return the figures as a tree for JSON. Percentages are of 100, times in seconds.

    ``allocation`` is the GPU time held by jobs over the GPU time of nodes that were up;
    ``pressedAllocation`` the same while a job waited. ``fragmentation`` is the part of the free GPU
    time that lay on nodes partly in use. ``fairness`` is Jain's index (1 is even, 1/n is one queue
    alone) over the GPU time of each queue that had jobs, by its weight. ``goodput`` is the part of
    the held GPU time whose work was kept. ``span`` counts jobs of several pods by the narrowest
    tier that held them at their start. ``rearrangements`` counts jobs for which others moved,
    ``moves`` how often jobs moved, ``movedGpuHours`` what they lost by it. ``communicationCost``
    tells of the jobs that state their parallelism the mean seconds of communication a step, the
    same at the best place that there is (``ideal``), and by how much they are above it.
    """
    total, lives = result.total, result.lives
    # Shares of memory and of compute may lie on one card: what jobs hold is not what cards miss.
    held = sum(result.queue_use.values())
    return {
        "seconds": round(result.end, 3),
        "jobs": len(lives),
        "ended": sum(life.ended is not None for life in lives),
        "stillWaiting": sum(bool(life.waiting) for life in lives),
        "allocation": _percent(total.used, total.capacity),
        "pressedAllocation": _percent(total.pressed_used, total.pressed_capacity),
        "fragmentation": _percent(total.stranded, total.free),
        "waits": waits(lives),
        "waitsByQueue": _by(sorted(lives, key=_queue), _queue),
        "waitsByClass": _by(sorted(lives, key=lambda life: life.work.gpus), _class),
        "fairness": fairness(result.queue_use, weights),
        "gpuHoursByQueue": {
            queue: round(used / 3600, 3) for queue, used in sorted(result.queue_use.items())
        },
        "communicationCost": communication_cost(result.communication),
        "preemptions": sum(life.preemptions for life in lives),
        "rearrangements": len(result.rearrangements),
        "moves": sum(life.moves for life in lives),
        "movedGpuHours": round(sum(one.price for one in result.rearrangements) / 3600, 3),
        "restarts": sum(life.restarts for life in lives),
        "nodeFaults": result.node_faults,
        "goodput": _percent(sum(life.useful for life in lives), held),
        "lostGpuHours": round(sum(life.lost for life in lives) / 3600, 3),
        "span": spans(result.stays, table),
        "decisions": result.decisions,
    }


def size_class(gpus: float) -> str:
    """Return the class of a job by its GPUs."""
    return next((name for most, name in CLASSES if gpus <= most), LARGEST)


def waits(lives: Iterable[Life]) -> dict[str, Any]:
    """Return how long jobs waited from their arrival to their first start.

    Those that never started are counted by themselves and in no mean; where none did the times
    are None.
    """
    lives = list(lives)
    found = [life.started - life.work.arrival for life in lives if life.started is not None]
    times: dict[str, float | None] = dict.fromkeys(("mean", "p50", "p95", "max"))
    if found:
        p50, p95 = np.percentile(found, (50, 95))
        times = {"mean": float(np.mean(found)), "p50": p50, "p95": p95, "max": max(found)}
    return {
        "jobs": len(lives),
        "neverStarted": len(lives) - len(found),
        **{
            name: None if value is None else round(float(value), 3) for name, value in times.items()
        },
    }


def _queue(life: Life) -> str:
    return life.work.queue


def _class(life: Life) -> str:
    return size_class(life.work.gpus)


def _by(lives: Sequence[Life], key: Callable[[Life], str]) -> dict[str, Any]:
    """Return the waits by what *key* says of the *lives*, which are in its order."""
    return {name: waits(group) for name, group in groupby(lives, key)}


def fairness(use: Mapping[str, float], weights: Mapping[str, int]) -> float:
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


def spans(stays: Sequence[Stay], table: NodeTable) -> dict[str, int]:
    """Return by tier how many jobs of several pods it held, narrowest first."""
    tiers = table.tiers.indices
    found = {tier.name: 0 for tier in reversed(tiers)} | {EVERYWHERE: 0}
    ordered = sorted(stays, key=lambda stay: (stay.job, stay.start))
    for _, group in groupby(ordered, key=lambda stay: stay.job):
        first = list(group)
        first = [stay for stay in first if stay.start == first[0].start]
        rows = [table.rows[stay.node] for stay in first if stay.node in table.rows]
        if len(rows) < 2:
            continue
        held = EVERYWHERE
        for tier in reversed(tiers):
            domains = set(tier.ids[rows].tolist())
            if len(domains) == 1 and NO_DOMAIN not in domains:
                held = tier.name
                break
        found[held] += 1
    return found


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0
