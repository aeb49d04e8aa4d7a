"""Which nodes a unit would rather have: they are tried alone before the others join them.

What a unit asks to be kept together by (its tiers) comes first. Within that, a place on nodes that
it likes better goes before a narrower or a tighter one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lockstep.scheduler.core.distinct import distinct
from lockstep.scheduler.core.fit import GPU_NODE_COST, Fit, FixedFit, FloatArray, ShapeFit
from lockstep.scheduler.core.nodes import IntArray
from lockstep.scheduler.core.problem import Problem

CLASSES = 4
"""Degrees of liking told apart; the least liked nodes count as one."""


def selections(problem: Problem, fits: Sequence[ShapeFit]) -> Iterator[Sequence[Fit]]:
    """Yield the fit vectors over the best liked nodes, then over more, then over all of them.

    A node is left out for all members or for none of equal liking, so that a gang is not torn
    between the nodes that one of its roles likes and those that are all another role can have.
    Members that have nodes set the standard: the others follow them to nodes that are no better.
    """
    costs = [_cost(problem, fit) for fit in fits]
    found = np.concatenate(
        [distinct(cost[fit.count > 0]) for cost, fit in zip(costs, fits, strict=True)]
    )
    limits = distinct(found)
    standing = list(problem.bounds.standing)
    if standing:
        limits = limits[limits >= max(float(cost[standing].max()) for cost in costs)]
    for limit in limits[:-1][: CLASSES - 1]:
        yield [
            FixedFit(fit.eligible & (cost <= limit), fit.count * (cost <= limit), fit.liking)
            for cost, fit in zip(costs, fits, strict=True)
        ]
    yield fits


def by_tier(tiers: IntArray, fits: Sequence[Fit]) -> Iterator[Sequence[Fit]]:
    """Yield the fit vectors over the first tier of a policy, then over more, then over all."""
    for last in distinct(tiers)[:-1]:
        inside = tiers <= last
        yield [FixedFit(fit.eligible & inside, fit.count * inside, fit.liking) for fit in fits]
    yield fits


def _cost(problem: Problem, fit: ShapeFit) -> FloatArray:
    """Return by row how much of the wishes is not met, 0 where all of them are.

    Nodes with GPUs are worse for a unit that takes none. Where some of its members do take GPUs,
    the others had better stand beside them.
    """
    if any(item.shape.takes_gpus for item in problem.items):
        return fit.unmet
    return fit.unmet + GPU_NODE_COST * fit.on_gpus
