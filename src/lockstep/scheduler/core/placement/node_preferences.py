"""What a workload would rather have of nodes, in one order: its NodePolicy, then what its pods
wish.

What a workload asks to be kept together by (its tiers of the network) comes first. Within that, a
place on nodes that it likes better goes before a narrower or a tighter one; how a strategy rates
the nodes (``preferences``) tells only those apart that are liked alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.scoring.feasibility import GPU_NODE_COST, Fit, within
from lockstep.scheduler.core.util.array_types import FloatArray, IntArray
from lockstep.scheduler.core.util.unique import distinct

CLASSES = 4
"""Degrees of liking told apart in a tier of a policy; the least liked nodes count as one."""


class Selection(NamedTuple):
    """Nodes that are liked well enough: the fit vectors on them."""

    fits: Sequence[Fit]
    mixed: bool
    """Whether several tiers of the policy have room among them: the first of them is to be filled,
    however much narrower a domain the others would be."""


def selections(
    problem: Problem, fits: Sequence[Fit], tiers: IntArray | None
) -> Iterator[Selection]:
    """Yield the best liked nodes, then more of them, then all.

    *tiers* are those of the workload's policy by row: the nodes of a tier join, the best liked of
    them first, once all of the tiers before it are in. A node is left out for all members or for
    none of equal liking, so that a gang is not torn between the nodes that one of its roles likes
    and those that are all another role can have."""
    costs = [_cost(problem, fit) for fit in fits]
    limits = _limits(problem, fits, costs)
    place = tiers if tiers is not None else np.zeros(len(costs[0]), dtype=np.int64)
    seen = 0
    for last, limit in list(product(distinct(place), limits))[:-1]:
        masks = [(place < last) | ((place == last) & (cost <= limit)) for cost in costs]
        chosen = [within(fit, mask) for fit, mask in zip(fits, masks, strict=True)]
        room = sum(int(np.count_nonzero(fit.count)) for fit in chosen)
        if room > seen:  # else there is no place that was not looked at
            seen = room
            yield Selection(chosen, _mixed(place, chosen))
    yield Selection(fits, _mixed(place, fits))


def _mixed(place: IntArray, fits: Sequence[Fit]) -> bool:
    room = np.logical_or.reduce([fit.count > 0 for fit in fits])
    return len(distinct(place[room])) > 1


def _limits(problem: Problem, fits: Sequence[Fit], costs: Sequence[FloatArray]) -> list[float]:
    """Return up to how much of the wishes may be missed, one after the other; at last anything.

    Members that have nodes set the standard: the others follow them to nodes that are no better.
    """
    found = np.concatenate(
        [distinct(cost[fit.count > 0]) for cost, fit in zip(costs, fits, strict=True)]
    )
    limits = distinct(found)
    standing = list(problem.bounds.standing)
    if standing:
        limits = limits[limits >= max(float(cost[standing].max()) for cost in costs)]
    return [*limits[:-1][: CLASSES - 1].tolist(), np.inf]


def _cost(problem: Problem, fit: Fit) -> FloatArray:
    """Return by row how much of the wishes is not met, 0 where all of them are.

    Nodes with GPUs are worse for a workload that takes none. Where some of its members do take
    GPUs, the others had better stand beside them."""
    if any(item.shape.takes_gpus for item in problem.items):
        return fit.unmet
    return fit.unmet + GPU_NODE_COST * fit.on_gpus
