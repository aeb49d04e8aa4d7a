"""What a matrix of measurements says is at fault.

A measurement is slow when it stays below a share of what its rail does at its best. Things are
blamed greedily, the wide before the narrow: one is at fault when almost all that passes through it
is slow, and what it explains is set aside before the next is looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SLOW: Final = 0.75
"""Share of the rail's best rate below which a measurement is slow."""
NEAR: Final = 0.6
"""Share of a rail's best rates from which a rate counts among those that tell what it does."""
SIGMAS: Final = 4.0
"""How far below the others, in standard deviations of theirs, a slow flow must be."""
LEAST: Final = 0.35
"""Share below which a flow is slow however much the others scatter."""
ALL: Final = 0.8
"""Share of what passes through a thing that must be slow for it to be at fault."""
LOSSY: Final = 5.0
"""Segments sent again per thousand above which a path loses packets."""
BEST: Final = 0.9
"""Quantile of a rail's rates that is taken for what it can do."""

CHANCE: Final = 0.6
"""Share of the rail's rate above which one slow direction of one pair is no fault."""

Kind = Literal["leaf", "node", "nic", "cable", "one-way", "uplink", "pair", "rail"]


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of one measurement on one rail: rate in Gb/s, segments resent per thousand."""

    source: str
    target: str
    rail: str
    rate: float
    resent: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What is at fault; *place* is ``node/rail``, a node, a leaf, or the two ends of a path."""

    kind: Kind
    place: str
    evidence: str
    share: float = 0.0
    """Of the rail's rate; 0 where that says nothing."""


class Matrix:
    """All flows as columns."""

    def __init__(self, flows: Sequence[Flow], leaves: Mapping[str, str] | None = None) -> None:
        leaves = leaves or {}
        self.nodes = sorted({f.source for f in flows} | {f.target for f in flows})
        self.rails = sorted({f.rail for f in flows})
        self.leaves = sorted({leaves.get(node, "") for node in self.nodes} - {""})
        number = {node: i for i, node in enumerate(self.nodes)}
        rail = {name: i for i, name in enumerate(self.rails)}
        leaf = {name: i for i, name in enumerate(self.leaves)}
        self.source = np.array([number[f.source] for f in flows], dtype=np.int64)
        self.target = np.array([number[f.target] for f in flows], dtype=np.int64)
        self.rail = np.array([rail[f.rail] for f in flows], dtype=np.int64)
        self.rate = np.array([f.rate for f in flows], dtype=np.float64)
        self.resent = np.array([f.resent for f in flows], dtype=np.float64)
        of = np.array([leaf.get(leaves.get(n, ""), -1) for n in self.nodes], dtype=np.int64)
        self.from_leaf, self.to_leaf = of[self.source], of[self.target]
        usual = [_usual(self.rate[self.rail == r]) for r in range(len(self.rails))]
        self.best = np.array([rate for rate, _ in usual])
        self.limit = np.array([share for _, share in usual])

    @property
    def slow(self) -> Bools:
        """Return which flows are slow, or lose far more than others of their rail."""
        rails = range(len(self.rails))
        usual = [float(np.median(self.resent[self.rail == r])) for r in rails]
        most = np.maximum(LOSSY, 5 * np.array(usual))
        found: Bools = self.rate < (self.limit * self.best)[self.rail]
        found |= self.resent > most[self.rail]
        return found

    def share(self, where: Bools) -> float:
        """Return the median rate of some flows over what their rails do."""
        return float(np.median(self.rate[where] / np.maximum(self.best[self.rail[where]], 1e-9)))


def _usual(rates: Floats) -> tuple[float, float]:
    """Return what a rail does, and the share of it below which a flow of it is slow.

    What it does is the median of the rates that are not far below its best ones; where these
    scatter, as on a busy machine, more is put down to chance.
    """
    near = rates[rates >= NEAR * np.quantile(rates, BEST)]
    rate = float(np.median(near))
    scatter = 1.4826 * float(np.median(np.abs(near - rate))) / max(rate, 1e-9)
    return rate, max(LEAST, min(SLOW, 1 - SIGMAS * scatter))


def judge(flows: Sequence[Flow], leaves: Mapping[str, str] | None = None) -> list[Fault]:
    """Return what is at fault, the widest first, then the slowest; empty where nothing is.

    *leaves* name the leaf of each node, where known.
    """
    if not flows:
        return []
    matrix = Matrix(flows, leaves)
    open_ = np.ones(len(flows), dtype=bool)
    slow = matrix.slow
    faults: list[Fault] = []
    for search in (_leaves, _uplinks, _nodes, _nics, _hubs, _pairs):
        found = []
        for fault, explained in search(matrix, open_, slow):
            found.append(replace(fault, share=matrix.share(explained & slow)))
            open_ &= ~explained
        faults += sorted(found, key=lambda one: one.share)
    return faults


def _at_fault(through: Bools, open_: Bools, slow: Bools, least: int) -> bool:
    seen = int(np.count_nonzero(through & open_))
    bad = int(np.count_nonzero(through & open_ & slow))
    return seen >= least and bad >= ALL * seen


def _leaves(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """A leaf is at fault when its nodes are slow among each other, most of them."""
    for number, name in enumerate(m.leaves):
        inside = (m.from_leaf == number) & (m.to_leaf == number)
        members = np.unique(m.source[inside])
        if len(members) < 3 or not _at_fault(inside, open_, slow, 6):
            continue
        through = (m.from_leaf == number) | (m.to_leaf == number)
        told = f"{len(members)} nodes under it reach {m.share(inside):.0%} of the rate among each "
        yield Fault("leaf", name, told + "other"), through


def _nodes(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """A node is at fault when it is slow to all, on all of its rails."""
    if len(m.rails) < 2 or len(m.nodes) < 3:
        return
    bad = _shares(m, open_, slow, m.source) if open_.any() else np.zeros(0)
    back = _shares(m, open_, slow, m.target)
    for number in np.flatnonzero(np.maximum(bad, back) >= ALL):
        parts = []
        for rail in range(len(m.rails)):
            on = m.rail == rail
            out, into = on & (m.source == number), on & (m.target == number)
            parts.append(_at_fault(out, open_, slow, 2) or _at_fault(into, open_, slow, 2))
        through = (m.source == number) | (m.target == number)
        if all(parts):
            told = f"slow on all {len(m.rails)} rails: {m.share(through & slow):.0%} of the rate"
            yield Fault("node", m.nodes[number], told), through


def _shares(m: Matrix, open_: Bools, slow: Bools, ends: Ints) -> Floats:
    """Return by node the share of slow flows among those that are open."""
    seen = np.bincount(ends[open_], minlength=len(m.nodes))
    bad = np.bincount(ends[open_ & slow], minlength=len(m.nodes))
    found: Floats = bad / np.maximum(seen, 1)
    return found


def _nics(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """A NIC or its cable is at fault when its node is slow to all on one rail.

    Those with the largest share of slow flows come first: a node that is slow only because many of
    its few peers are at fault is then explained by them.
    """
    if len(m.nodes) < 3:
        return
    for rail in range(len(m.rails)):
        on = m.rail == rail
        while (number := _worst(m, on, open_, slow)) is not None:
            out, into = on & (m.source == number), on & (m.target == number)
            fault = _nic_or_cable(m, number, rail, (out & open_, into & open_), slow)
            yield fault, out | into
            # The caller has set these aside in *open_* by now: it is the same array.


def _worst(m: Matrix, on: Bools, open_: Bools, slow: Bools) -> int | None:
    """Return the node that explains the most slow flows of a rail among those that are all slow."""
    live = open_ & on
    best: tuple[int, float] | None = None
    found = None
    counts = []
    for ends in (m.source, m.target):
        seen = np.bincount(ends[live], minlength=len(m.nodes))
        bad = np.bincount(ends[live & slow], minlength=len(m.nodes))
        counts.append((seen, bad))
    for number in np.flatnonzero(counts[0][1] + counts[1][1]):
        guilty = sum(
            int(bad[number])
            for seen, bad in counts
            if seen[number] >= 2 and bad[number] >= ALL * seen[number]
        )
        ranked = (guilty, guilty / max(1, int(counts[0][0][number] + counts[1][0][number])))
        if guilty and (best is None or ranked > best):
            best, found = ranked, int(number)
    return found


def _nic_or_cable(
    m: Matrix, number: int, rail: int, ways: tuple[Bools, Bools], slow: Bools
) -> Fault:
    place = f"{m.nodes[number]}/{m.rails[rail]}"
    bad = [bool(way.any()) and np.count_nonzero(way & slow) >= ALL * way.sum() for way in ways]
    lossy = [bool(way.any()) and float(np.median(m.resent[way])) > LOSSY for way in ways]
    words = [
        f"{name}: {m.share(way):.0%} of the rate, {np.median(m.resent[way]):.1f} of 1000 resent"
        for name, way in zip(("sending", "receiving"), ways, strict=True)
        if way.any()
    ]
    told = "; ".join(words)
    if all(bad) and any(lossy):
        return Fault("cable", place, told)
    if any(b and loses for b, loses in zip(bad, lossy, strict=True)):
        return Fault("one-way", place, told)
    return Fault("nic", place, told)


def _uplinks(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """An uplink is at fault when a leaf's nodes are slow to all outside, not to each other."""
    crossing = (m.from_leaf >= 0) & (m.to_leaf >= 0) & (m.from_leaf != m.to_leaf)
    inside = (m.from_leaf >= 0) & (m.from_leaf == m.to_leaf)
    sound = np.count_nonzero(inside & ~slow) > np.count_nonzero(inside) / 2
    if len(m.leaves) == 2 and sound and _at_fault(crossing, open_, slow, 4):
        told = f"all between both reach {m.share(crossing):.0%} of the rate, and inside each all"
        yield Fault("uplink", ",".join(m.leaves), told), crossing
        return
    for number, name in enumerate(m.leaves):
        through = crossing & ((m.from_leaf == number) ^ (m.to_leaf == number))
        out, into = through & (m.from_leaf == number), through & (m.to_leaf == number)
        inside = (m.from_leaf == number) & (m.to_leaf == number)
        sound = np.count_nonzero(inside & ~slow) > np.count_nonzero(inside) / 2
        if sound and (_at_fault(out, open_, slow, 4) or _at_fault(into, open_, slow, 4)):
            told = f"its nodes reach others at {m.share(through & slow):.0%} of the rate"
            yield Fault("uplink", name, told), through


def _hubs(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """A node is the hub of what is left when most of its pairs on a rail are bad, and no others.

    A cable that loses a little does not spoil each measurement.
    """
    for rail in range(len(m.rails)):
        left = open_ & slow & (m.rail == rail)
        low = np.minimum(m.source[left], m.target[left])
        high = np.maximum(m.source[left], m.target[left])
        bad = set(zip(low.tolist(), high.tolist(), strict=True))
        ends = np.array(sorted(bad), dtype=np.int64).ravel()
        counts = np.bincount(ends, minlength=len(m.nodes))
        hub = int(counts.argmax())
        if counts[hub] < 3 or any(hub not in pair for pair in bad):
            continue
        through = (m.rail == rail) & ((m.source == hub) | (m.target == hub))
        met = len(set(m.source[through]) | set(m.target[through])) - 1
        if 2 * counts[hub] > met:
            lost = float(np.mean(m.resent[through]))
            told = f"{counts[hub]} of {met} pairs are bad; {lost:.1f} of 1000 resent"
            place = f"{m.nodes[hub]}/{m.rails[rail]}"
            yield Fault("cable" if lost > LOSSY else "nic", place, told), through


def _pairs(m: Matrix, open_: Bools, slow: Bools) -> Iterator[tuple[Fault, Bools]]:
    """What nothing else explains is the path of a pair, when both of its ways are slow."""
    left = np.flatnonzero(open_ & slow)
    ends: Callable[[int], tuple[int, int, int]] = lambda i: (  # noqa: E731
        int(min(m.source[i], m.target[i])),
        int(max(m.source[i], m.target[i])),
        int(m.rail[i]),
    )
    for low, high, rail in sorted({ends(int(i)) for i in left}):
        through = (m.rail == rail) & (
            ((m.source == low) & (m.target == high)) | ((m.source == high) & (m.target == low))
        )
        # One way alone, and not far below, may be chance.
        lost = float(m.resent[through].max()) > LOSSY
        if not slow[through].all() and not lost and m.share(through & slow) > CHANCE:
            continue
        place = f"{m.nodes[low]},{m.nodes[high]}/{m.rails[rail]}"
        yield Fault("pair", place, f"{m.share(through & slow):.0%} of the rail's rate"), through
