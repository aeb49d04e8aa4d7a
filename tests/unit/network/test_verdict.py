"""The culprit is named from the matrix, and none where there is none."""

from __future__ import annotations

import random

import pytest
from bench.support.networks import Network

from lockstep.devices.network.core.verdict import Flow, judge

KINDS = ("node", "nic", "cable", "one-way", "leaf", "uplink")


def network(nodes: int, leaf: int, seed: int) -> Network:
    return Network(nodes, leaf, 2, random.Random(seed))  # noqa: S311


@pytest.mark.parametrize("nodes", [3, 8, 64])
def test_healthy_networks_are_blamed_for_nothing(nodes: int) -> None:
    for seed in range(10):
        drawn = network(nodes, 4, seed)
        assert judge(drawn.flows(0, seed), drawn.leaves) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("peers", [0, 16])
def test_one_fault_is_named(kind: str, peers: int) -> None:
    for seed in range(5):
        drawn = network(64, 8, seed)
        drawn.draw(1, (kind,))
        found = judge(drawn.flows(peers, seed), drawn.leaves)
        assert {one.place: one.kind for one in found} == drawn.faults


def test_a_cable_that_loses_and_keeps_its_rate_is_named() -> None:
    names = [f"n{n}" for n in range(6)]
    flows = [
        Flow(a, b, "rail0", 50.0, 30.0 if "n2" in (a, b) else 0.1)
        for a in names
        for b in names
        if a != b
    ]
    assert [(one.kind, one.place) for one in judge(flows)] == [("cable", "n2/rail0")]


def test_a_node_in_most_bad_pairs_is_blamed_for_them() -> None:
    names = [f"n{n}" for n in range(8)]
    spared = {("n2", "n0"), ("n0", "n2"), ("n2", "n5"), ("n5", "n2")}
    flows = [
        Flow(a, b, "rail0", 50.0, 15.0 if "n2" in (a, b) and (a, b) not in spared else 0.0)
        for a in names
        for b in names
        if a != b
    ]
    assert [(one.kind, one.place) for one in judge(flows)] == [("cable", "n2/rail0")]


def test_scattered_rates_are_no_fault_but_a_slow_nic_is() -> None:
    # Measured between three namespaces on a busy machine without limits, in Gb/s.
    rail0 = [7.18, 7.14, 7.59, 14.35, 5.46, 6.89]
    rail1 = [12.22, 11.48, 9.36, 0.48, 0.49, 13.26]
    ends = [("a", "c"), ("c", "a"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    flows = [
        Flow(*pair, rail, rate)
        for rail, rates in (("rail0", rail0), ("rail1", rail1))
        for pair, rate in zip(ends, rates, strict=True)
    ]
    assert [(one.kind, one.place) for one in judge(flows)] == [("nic", "b/rail1")]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_several_faults_are_named(count: int) -> None:
    for seed in range(5):
        drawn = network(96, 8, seed)
        drawn.draw(count, KINDS)
        found = judge(drawn.flows(16, seed), drawn.leaves)
        assert {one.place: one.kind for one in found} == drawn.faults, drawn.faults


@pytest.mark.parametrize(
    ("slow", "place"),
    [
        pytest.param({("n0", "n1"), ("n1", "n0")}, "n0,n1/rail0", id="a path of two"),
        pytest.param({("n0", "n1"), ("n0", "n2")}, "n0/rail0", id="one NIC sends slowly"),
        pytest.param({("n1", "n0"), ("n2", "n0")}, "n0/rail0", id="one NIC receives slowly"),
    ],
)
def test_three_nodes_suffice(slow: set[tuple[str, str]], place: str) -> None:
    names = ("n0", "n1", "n2")
    flows = [
        Flow(a, b, "rail0", 10.0 if (a, b) in slow else 50.0)
        for a in names
        for b in names
        if a != b
    ]
    assert [one.place for one in judge(flows)] == [place]
