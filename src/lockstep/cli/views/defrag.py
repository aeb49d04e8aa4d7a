"""A plan of moves as lines of text and as a tree."""

from __future__ import annotations

from collections import Counter

from lockstep.api.wire import Json
from lockstep.scheduler.core.defrag.messages import of_one_gpu, on_nodes
from lockstep.scheduler.core.defrag.planner import MovePlan

HOUR = 3600.0


def lines(name: str, plan: MovePlan | str) -> list[str]:
    """Return a plan, or why there is none, as lines of text."""
    if isinstance(plan, str):
        return [
            f"no moves would let {name} start: {plan}",
            f"`lockstep explain {name}` says what it lacks",
        ]
    count = len(plan.moves)
    shown = [
        f"{name} would start if {count} {'job' if count == 1 else 'jobs'} moved; "
        f"{plan.price / HOUR:.1f} GPU hours of work would be done again"
    ]
    for move in plan.moves:
        key, price = move.mover.key, of_one_gpu(move.mover.price)
        whom = (
            key.name if key.namespace == plan.workload.namespace else f"{key.namespace}/{key.name}"
        )
        if move.mover.stays:
            pods = len(move.mover.members)
            whom += f" ({pods} of its {move.mover.stays + pods} pods)"
        shown.append(f"  {whom}: {on_nodes(move.before)} -> {on_nodes(move.after)}  ({price})")
    nodes = Counter(one.spot.node for one in plan.placement.assignments)
    return [*shown, f"  then {name} on {on_nodes(nodes)}"]


def tree(plan: MovePlan) -> Json:
    """Return a plan as a tree for JSON; prices are GPU-seconds."""
    return {
        "job": plan.workload.name,
        "price": plan.price,
        "nodes": {one.member.name: one.spot.node for one in plan.placement.assignments},
        "moves": [
            {
                "namespace": move.mover.key.namespace,
                "job": move.mover.key.name,
                "price": move.mover.price,
                "pods": sorted(member.name for member in move.mover.members),
                "before": sorted(move.before.elements()),
                "after": sorted(move.after.elements()),
            }
            for move in plan.moves
        ],
    }
