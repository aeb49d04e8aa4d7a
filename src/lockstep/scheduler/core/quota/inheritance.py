"""What a queue has from those above it where it does not say so itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lockstep.api.gang import Strategy
from lockstep.api.queue import DefragmentationPolicy, Queue, QueueSpec


def strategy(specs: Mapping[str, Queue], name: str) -> Strategy | None:
    """Return how the pods of a queue choose nodes: as it says, or the next one above it."""
    return next((s.strategy for s in _upward(specs, name) if s.strategy is not None), None)


def defragmentation(specs: Mapping[str, Queue], name: str) -> DefragmentationPolicy | None:
    """Return when others move for a queue's gangs: as it says, or the next one above it."""
    stated = (spec.defragmentation for spec in _upward(specs, name))
    return next((policy for policy in stated if policy is not None), None)


def _upward(specs: Mapping[str, Queue], name: str) -> Iterator[QueueSpec]:
    """Yield what a queue says and then those that it is part of, by name alone."""
    seen: set[str] = set()
    while name in specs and name not in seen:
        seen.add(name)
        spec = specs[name].spec
        yield spec
        name = spec.parent or ""
