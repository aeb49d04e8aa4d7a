"""Who measures with whom, when: rounds of disjoint pairs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

Pair = tuple[int, int]


def rounds(count: int) -> list[list[Pair]]:
    """Return the rounds in which each of *count* meets each other once (the circle method)."""
    ring = list(range(count + count % 2))
    found = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        pairs = zip(ring[:half], reversed(ring[half:]), strict=True)
        found.append([(min(pair), max(pair)) for pair in pairs if max(pair) < count])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return [one for one in found if one]


def sampled(count: int, peers: int, domains: Mapping[int, str], seed: int = 0) -> list[list[Pair]]:
    """Return rounds in which each meets about *peers* others, half of them in its own domain.

    All meet all where *peers* is 0 or covers all. *domains* name the leaf of each, where known.
    """
    if not peers or peers >= count - 1:
        return rounds(count)
    rng = random.Random(seed)  # noqa: S311 - which pairs meet is no secret
    inside = _inside(count, peers // 2, domains, rng)
    wide = [_shuffled(count, rng) for _ in range(peers - len(inside))]
    return [one for one in _without_repeats([*inside, *wide]) if one]


def _shuffled(count: int, rng: random.Random) -> list[Pair]:
    order = list(range(count))
    rng.shuffle(order)
    return [(min(p), max(p)) for p in zip(order[::2], order[1::2], strict=False)]


def _inside(
    count: int, most: int, domains: Mapping[int, str], rng: random.Random
) -> list[list[Pair]]:
    members: dict[str, list[int]] = {}
    for number in range(count):
        if domains.get(number):
            members.setdefault(domains[number], []).append(number)
    found: list[list[Pair]] = [[] for _ in range(most)]
    for group in members.values():
        rng.shuffle(group)
        for kept, one in zip(found, rounds(len(group)), strict=False):
            kept += [(min(group[a], group[b]), max(group[a], group[b])) for a, b in one]
    return [one for one in found if one]


def _without_repeats(all_rounds: Sequence[Sequence[Pair]]) -> Iterator[list[Pair]]:
    seen: set[Pair] = set()
    for one in all_rounds:
        yield [pair for pair in one if pair not in seen]
        seen.update(one)


def lanes(rails: Iterable[str], across: bool) -> list[tuple[str, str]]:
    """Return which rail of a pair's first node talks to which of the second, in order.

    First each rail with itself; *across* has each with the others too.
    """
    names = sorted(rails)
    same = [(one, one) for one in names]
    crossing = [(one, other) for one in names for other in names if one != other]
    return [*same, *crossing] if across else same


def partners(nodes: Sequence[str], node: str, all_rounds: Sequence[Sequence[Pair]]) -> list[str]:
    """Return whom *node* meets, round by round; a round in which it rests is left out."""
    own = nodes.index(node)
    met = []
    for pairs in all_rounds:
        met += [nodes[b if a == own else a] for a, b in pairs if own in (a, b)]
    return met
