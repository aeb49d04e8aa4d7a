"""The requests of past pods: Lockstep expects that the next pods ask for the same.

Each pod counts once, when the scheduler first sees it. A pod that was made later counts more. The
sum does not depend on the order in which pods are seen. A scheduler that starts again counts the
pods that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from lockstep.api.core import NodeSelectorTerm
from lockstep.api.names import CPU, GPU_MODEL_LABEL, MEMORY
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.resources.gpu_shares import MIB, GpuShare

HALF_LIFE = 7.0
"""Days after which a pod counts half as much as one made today."""
FIRST_DAY = date(2026, 1, 1).toordinal()
REBASE = 64.0
"""Half-lives after which counts are expressed by a later day, so that they stay small numbers."""
MOST = 256
"""Kinds of requests that are told apart; the rarest are forgotten beyond it."""


class PastRequest(NamedTuple):
    """What of a pod decides where it does least harm."""

    cpu: int
    """Milli-CPUs."""
    memory: int
    """MiB."""
    gpus: int
    share: GpuShare | None
    models: frozenset[str]
    """The GPU models that will do; none means any."""


def past_request(shape: PodShape) -> PastRequest:
    """Return what pods of a shape ask for."""
    memory = -(-shape.request.get(MEMORY, 0) // MIB)
    return PastRequest(shape.request.get(CPU, 0), memory, shape.gpus, shape.share, _models(shape))


def _models(shape: PodShape) -> frozenset[str]:
    named = shape.selector.get(GPU_MODEL_LABEL)
    if named is not None:
        return frozenset((named,))
    terms = shape.required.node_selector_terms if shape.required is not None else []
    chosen = [_listed(term) for term in terms]
    return frozenset().union(*chosen) if all(chosen) else frozenset()


def _listed(term: NodeSelectorTerm) -> frozenset[str]:
    for one in term.match_expressions:
        if one.key == GPU_MODEL_LABEL and one.operator == "In":
            return frozenset(one.values)
    return frozenset()


class DemandHistory:
    """How often each kind of request has come, late ones counting more.

    Weights are sums, so they do not depend on the order in which requests are counted.
    """

    def __init__(self) -> None:
        self._weights: dict[PastRequest, float] = {}
        self._base = 0.0
        """The moment, in half-lives, by which the weights are expressed."""
        self.total = 0.0
        """Moves with every request: the weight of all of them."""
        self._asks: dict[int, PastRequest] = {}
        """By the number of a shape; those of shapes no longer in use are dropped now and then."""
        self.sharing = False
        """Whether anything has ever asked for a share of a GPU."""

    def note(self, shape: PodShape, created: str) -> None:
        """Count a pod that was made at a time (RFC 3339; only the day matters)."""
        ask = self._ask(shape)
        self.sharing |= ask.share is not None
        age = _day(created[:10]) - self._base
        if age > REBASE:
            self._rebase(age)
            age = 0.0
        weight = 2.0**age
        self._weights[ask] = self._weights.get(ask, 0.0) + weight
        self.total += weight
        if len(self._weights) > 2 * MOST:
            self._weights = dict(self.usual())
            self.total = sum(self._weights.values())

    def _rebase(self, later: float) -> None:
        self._base += later
        self._weights = {ask: weight * 2.0**-later for ask, weight in self._weights.items()}
        self.total *= 2.0**-later

    def _ask(self, shape: PodShape) -> PastRequest:
        found = self._asks.get(shape.id)
        if found is None:
            if len(self._asks) >= 16 * MOST:
                self._asks.clear()
            found = self._asks[shape.id] = past_request(shape)
        return found

    def usual(self) -> Iterator[tuple[PastRequest, float]]:
        """Yield the kinds of requests that come most, and how much of what came they are."""
        yield from sorted(self._weights.items(), key=_by_weight)[:MOST]


def _by_weight(item: tuple[PastRequest, float]) -> tuple[object, ...]:
    ask, weight = item
    share = (ask.share.cards, ask.share.compute, ask.share.memory) if ask.share else ()
    return -weight, ask.gpus, share, ask.cpu, ask.memory, sorted(ask.models)


@lru_cache(maxsize=1024)
def _day(day: str) -> float:
    """Return a day (2026-01-31) in half-lives; 0 where it is none."""
    try:
        return (date.fromisoformat(day).toordinal() - FIRST_DAY) / HALF_LIFE
    except ValueError:  # a pod that does not say when it was made
        return 0.0
