"""What is said of moves: as a plan, while they are made, and where none are."""

from __future__ import annotations

from collections import Counter

from lockstep.api import duration
from lockstep.scheduler.core.defrag.migration import Rearrangement, Step
from lockstep.scheduler.core.resources import wording

NAMED = 4
"""Gangs and nodes that are named before the rest is counted."""


def of_one_gpu(gpu_seconds: float) -> str:
    """Return an amount of work as people say it: ``3h20m of one GPU``."""
    return f"{duration.show(gpu_seconds)} of one GPU"


def on_nodes(nodes: Counter[str]) -> str:
    """Return on which nodes how many pods stand: ``n1 (2 pods), n2``."""
    shown = [
        f"{node} ({wording.count(pods, 'pod')})" if pods > 1 else node
        for node, pods in sorted(nodes.items())
    ]
    rest = len(shown) - NAMED
    return ", ".join(shown[:NAMED]) + (
        f" and {wording.count(rest, 'more node')}" if rest > 0 else ""
    )


def progress(one: Rearrangement) -> str:
    """Return how far a rearrangement is."""
    steps = Counter(move.step for move in one.moves.values())
    said: dict[Step, str] = {
        "Leaving": "still to leave",
        "Returning": "on the way back",
        "Standing": "in place",
        "Waiting": "without the new place, back in line",
        "Stayed": "not moved",
        "Gone": "ended or deleted",
    }
    parts = [f"{steps[step]} {told}" for step, told in said.items() if steps[step]]
    who = "1 gang moves" if len(one.moves) == 1 else f"{len(one.moves)} gangs move"
    again = f"work done again: {of_one_gpu(one.price)}"
    return f"{who} so that it fits ({again}): {wording.listing(parts)}"


def no_plan(movable: int) -> str:
    """Return why no moves are made where so many gangs may be moved."""
    if not movable:
        return (
            "no gang may be moved for it: of those that run and are not more important, none is "
            "elastic or says when it saved its work last"
        )
    who = wording.count(movable, "gang")
    return f"moving any of the {who} that may be moved does not let it start with all in place"
