"""Gangs with ranks whose pods go by single devices: every place offered must have the devices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import gang, node, pod
from tests.support.examples import examples

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

HALVES = [
    *({"index": i, "nvlink": i // 4, "numa": i // 4, "pcie": i // 2} for i in range(8)),
    *({"index": i, "kind": "nic", "numa": i // 4, "pcie": i} for i in range(4)),
]
"""8 GPUs, NVLink in halves, a PCIe root with one NIC for each two."""
PAIR: dict[str, Any] = {"gpus": 2, "must": "nvlink"}
WIRED: dict[str, Any] = {"gpus": 2, "must": "pcie", "requests": {"lockstep.dev/nics": 1}}
SHARED: dict[str, Any] = {"requests": {"lockstep.dev/gpu-compute": 60}}


def placed(held: list[tuple[int, ...]], count: int, kind: dict[str, Any]) -> list[str]:
    """Place a gang of pods with ranks; return the nodes.

    By node *held* are the GPUs in use; two nodes are under a leaf.
    """
    cluster = Cluster()
    for i, gpus in enumerate(held):
        cluster.set_node(node(f"n{i}", devices=HALVES, labels={"leaf": f"l{i // 2}"}))
        if gpus:
            mask = ",".join(map(str, gpus))
            cluster.set_pod(pod(f"held-{i}", gpus=len(gpus), on=f"n{i}", held=mask))
    groups = [{"name": "w", "min": count}]
    cluster.set_gang(gang("j", groups=groups, parallelism={"tensor": 1, "pipeline": count}))
    more = {key: value for key, value in kind.items() if key != "must"}
    for i in range(count):
        told = {"lockstep.dev/rank": str(i), "lockstep.dev/align-required": kind.get("must", "")}
        cluster.set_pod(pod(f"j-{i}", gang="j", group="w", annotations=told, **more))
    assert not Decider(cluster).decide(0.0).errors
    members = [cluster.pods["default", f"j-{i}"] for i in range(count)]
    if not kind.get("requests", {}).get("lockstep.dev/gpu-compute"):
        given = [(m.node, gpu) for m in members for gpu in indices_of(m.grant.gpus)]
        assert len(set(given)) == len(given)
        assert all(len({gpu // 4 for gpu in indices_of(m.grant.gpus)}) < 2 for m in members)
    return [member.node for member in members]


@pytest.mark.parametrize(
    ("kind", "gone", "holds"),
    [
        (PAIR, (3, 7), 2),  # 3 and 3 are left: 6 GPUs, of which 2 pairs can be had
        (WIRED, (1, 3), 2),  # 6 are left, under two roots of 2
        (SHARED, (2, 3, 4, 5, 6, 7), 2),  # two cards hold one each, and have 80 in all left over
    ],
)
def test_ranks_are_offered_no_place_without_devices(kind, gone, holds):
    found = placed([gone, gone], holds + 1, kind)
    assert sorted(map(found.count, ("n0", "n1"))) == [1, holds]


@settings(max_examples=examples(40), deadline=None)
@given(
    held=st.lists(st.frozensets(st.integers(0, 7)).map(sorted).map(tuple), min_size=2, max_size=5),
    count=st.integers(2, 7),
    kind=st.sampled_from([PAIR, WIRED, SHARED]),
)
def test_whatever_is_in_use_all_or_none_find_their_devices(held, count, kind):
    found = placed(held, count, kind)
    assert all(found) or not any(found)
