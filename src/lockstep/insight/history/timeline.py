"""A GPU's time without gap or overlap: who had which part of it in each stretch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lockstep.insight.history.records import Claim, NodeSpan


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time during which the holders of one GPU stayed the same; shares and ``free`` sum to 1."""

    node: NodeSpan
    gpu: int
    start: float
    end: float
    holders: tuple[tuple[Claim, float], ...]
    free: float

    @property
    def seconds(self) -> float:
        """Return how long it lasts."""
        return self.end - self.start


def stretches(
    nodes: Iterable[NodeSpan], claims: Iterable[Claim], start: float, end: float
) -> Iterator[Stretch]:
    """Return the time of every GPU within *start* and *end*, node by node, without gap.

    What is open lasts until *end*. Where claims on a GPU sum to more than the GPU, each gets its
    part in proportion, so that no second counts twice. Claims on what no node has are left out;
    ``stray`` counts them.
    """
    of: dict[tuple[str, int], list[Claim]] = defaultdict(list)
    for claim in claims:
        of[claim.node, claim.gpu].append(claim)
    for node in nodes:
        first, last = max(node.start, start), _until(node.end, end)
        if last <= first:
            continue
        for gpu in range(node.gpus):
            yield from _of_gpu(node, gpu, of.get((node.name, gpu), ()), first, last)


def stray(nodes: Sequence[NodeSpan], claims: Iterable[Claim], start: float, end: float) -> float:
    """Return the GPU-seconds of claims within *start* and *end* that no node on record had."""
    there: dict[str, list[NodeSpan]] = defaultdict(list)
    for node in nodes:
        there[node.name].append(node)
    lost = 0.0
    for claim in claims:
        first, last = max(claim.start, start), _until(claim.end, end)
        covered = sum(
            max(0.0, min(last, _until(n.end, end)) - max(first, n.start))
            for n in there[claim.node]
            if claim.gpu < n.gpus
        )
        lost += max(0.0, last - first - covered) * claim.share
    return lost


def _of_gpu(
    node: NodeSpan, gpu: int, claims: Sequence[Claim], first: float, last: float
) -> Iterator[Stretch]:
    spans = [(max(c.start, first), _until(c.end, last), c) for c in claims]
    spans = sorted(((a, b, c) for a, b, c in spans if a < b), key=lambda s: (s[0], s[2].key))
    cuts = sorted({first, last, *(a for a, _, _ in spans), *(b for _, b, _ in spans)})
    active: list[tuple[float, Claim]] = []
    coming = iter(spans)
    ahead = next(coming, None)
    for begin, stop in pairwise(cuts):
        active = [(b, c) for b, c in active if b > begin]
        while ahead is not None and ahead[0] <= begin:
            active.append((ahead[1], ahead[2]))
            ahead = next(coming, None)
        taken = sum(c.share for _, c in active)
        scale = 1 / taken if taken > 1 else 1.0
        holders = tuple((c, c.share * scale) for _, c in active)
        yield Stretch(node, gpu, begin, stop, holders, max(0.0, 1 - taken))


def _until(end: float | None, last: float) -> float:
    return last if end is None else min(end, last)
