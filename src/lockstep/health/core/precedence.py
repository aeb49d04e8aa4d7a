"""Which of many lines about faults tells the cause: causes before what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lockstep.health.core.lines import Hit

NEAR: Final = 600.0
"""Seconds before a job's error in which a fault of a machine may have brought it about."""
WENT_ON: Final = 30.0
"""Seconds after which a job has survived an error of its program."""
TELLING: Final = 0.55
"""Confidence from which on a line that says little still names a cause."""

Key = tuple[object, ...]


def precedence(found: Sequence[Hit]) -> Callable[[Hit], Key]:
    """Return the order of *found*, the cause first.

    What explains itself precedes what says little, and that what follows. Of the first, an error
    of the program that no machine brings about comes first unless the job went on after it, then
    a fault of a machine shortly before, then time.
    """
    machines = [hit.line.at for hit in found if is_machine(hit) and hit.line.at is not None]
    errors = [hit.line.at for hit in found if not is_machine(hit) and hit.line.at is not None]
    last, first = max(machines, default=None), min(errors, default=None)

    def key(hit: Hit) -> Key:
        signature, at = hit.signature, hit.line.at
        when = (float("inf") if at is None else at, hit.order)
        acts = signature.verdict.action != "observe"
        if signature.verdict.tier == 1:
            told = signature.verdict.confidence >= TELLING
            return (1, not acts, not told, signature.verdict.class_ == "network", *when)
        if signature.verdict.tier == 2:
            return (2, signature.verdict.class_ == "unknown", *when)
        rank = 2
        if signature.verdict.kind == "static":
            rank = 2 if last is not None and at is not None and last > at + WENT_ON else 0
        elif is_machine(hit):
            rank = 3 if first is not None and at is not None and first - at > NEAR else 1
        return (0, not acts, rank, *when)

    return key


def is_machine(hit: Hit) -> bool:
    """Say whether a node's kernel or a service tells of a fault of the node."""
    one = hit.signature
    return one.where == "kernel" and one.verdict.class_ in ("hardware", "storage", "network")
