"""Rounds of disjoint pairs."""

from __future__ import annotations

from itertools import combinations

import pytest

from lockstep.devices.network.core.rounds import lanes, partners, rounds, sampled


@pytest.mark.parametrize("count", range(2, 20))
def test_each_meets_each_once_in_disjoint_pairs(count: int) -> None:
    found = rounds(count)
    met = [pair for one in found for pair in one]
    assert sorted(met) == sorted(combinations(range(count), 2))
    for one in found:
        busy = [end for pair in one for end in pair]
        assert len(busy) == len(set(busy))


def test_sampled_rounds_are_disjoint_and_stay_in_their_leaf() -> None:
    domains = {n: f"leaf{n // 8}" for n in range(64)}
    found = sampled(64, 8, domains)
    met: dict[int, set[int]] = {n: set() for n in range(64)}
    for one in found:
        busy = [end for pair in one for end in pair]
        assert len(busy) == len(set(busy))
        for a, b in one:
            assert b not in met[a]
            met[a].add(b)
            met[b].add(a)
    assert all(6 <= len(peers) <= 8 for peers in met.values())
    assert all(any(domains[p] == domains[n] for p in peers) for n, peers in met.items())


def test_partners_come_in_the_order_of_rounds() -> None:
    names = ["a", "b", "c", "d"]
    assert sorted(partners(names, "a", rounds(4))) == ["b", "c", "d"]


def test_rails_meet_themselves_first_and_others_only_if_asked() -> None:
    same = [("a", "a"), ("b", "b")]
    assert lanes(["b", "a"], across=False) == same
    assert lanes(["b", "a"], across=True) == [*same, ("a", "b"), ("b", "a")]
