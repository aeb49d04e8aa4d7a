"""Nodes as objects: names, places, devices."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api import names
from lockstep.api.core import Node
from lockstep.api.devices import Device, NumaNode
from lockstep.api.wire import convert
from lockstep.nodes.simulated import fleet
from lockstep.nodes.simulated.spec import parse

NOW = 1_800_000_000.0


@given(st.integers(1, 200), st.integers(1, 9), st.integers(1, 5))
def test_every_node_has_a_place_and_no_switch_is_overfull(
    nodes: int, per_leaf: int, per_spine: int
) -> None:
    spec = f"{nodes}x8,nodes-per-leaf={per_leaf},leaves-per-spine={per_spine}"
    found = fleet.fleet(parse(spec)).values()
    assert len(found) == nodes
    assert max(Counter(node.leaf for node in found).values()) <= per_leaf
    leaves = {(node.spine, node.leaf) for node in found}
    assert len(leaves) == len({leaf for _, leaf in leaves}) == -(-nodes // per_leaf)
    assert max(Counter(spine for spine, _ in leaves).values()) <= per_spine
    assert len({node.address for node in found}) == nodes


def test_groups_share_no_switch() -> None:
    groups = parse("12x8,nodes-per-leaf=4,leaves-per-spine=2,name-prefix=a")
    groups += parse("4x0,name-prefix=b")
    found = fleet.fleet(groups)
    spines = {prefix: {n.spine for n in found.values() if n.name[0] == prefix} for prefix in "ab"}
    assert spines == {"a": {"spine-0", "spine-1"}, "b": {"spine-2"}}
    assert list(found)[-1] == "b-0-0-3"


def test_a_node_says_what_it_has() -> None:
    [node] = fleet.fleet(parse("1x8,memory=64Gi")).values()
    made = convert(fleet.node_object(node, NOW), Node)
    assert made.metadata.labels == {
        "kubernetes.io/hostname": "sim-0-0-0",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "lockstep.dev/node": "simulated",
        "spine": "spine-0",
        "leaf": "leaf-0-0",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.memory": "81920",
    }
    assert made.status.allocatable[names.GPU] == "8"
    assert made.status.allocatable[names.MEMORY] == "65536Mi"
    ready = made.status.conditions[0]
    assert (ready.type, ready.status) == ("Ready", "True")


def test_a_node_without_gpus_names_none() -> None:
    [node] = fleet.fleet(parse("1x0")).values()
    made = fleet.node_object(node, NOW)
    assert names.GPU not in made["status"]["capacity"]
    assert names.GPU_MODEL_LABEL not in made["metadata"]["labels"]
    assert json.loads(made["metadata"]["annotations"][names.DEVICES_ANNOTATION]) == []


OURS = ("lockstep.dev/simulated", "NoSchedule")
SOFT = ("lockstep.dev/simulated", "PreferNoSchedule")
NOT_READY = ("node.kubernetes.io/not-ready", "NoSchedule")
THEIRS = ("maintenance", "NoExecute")


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ([], [OURS]),
        ([OURS], [OURS]),
        ([NOT_READY], [OURS]),
        ([THEIRS, NOT_READY], [THEIRS, OURS]),
        ([SOFT, THEIRS], [THEIRS, OURS]),
    ],
)
def test_real_pods_are_kept_away(
    shown: list[tuple[str, str]], wanted: list[tuple[str, str]]
) -> None:
    given = [{"key": key, "effect": effect} for key, effect in shown]
    there = convert({"metadata": {"name": "n"}, "spec": {"taints": given}}, Node)
    assert [(taint.key, taint.effect) for taint in fleet.taints(there)] == wanted


def test_a_new_node_keeps_real_pods_away() -> None:
    [node] = fleet.fleet(parse("1x8")).values()
    made = convert(fleet.node_object(node, NOW), Node)
    assert made.spec.taints == fleet.taints(made)


def devices(spec: str) -> list[Device]:
    [node] = fleet.fleet(parse(spec)).values()
    return msgspec.json.decode(fleet.inventory(node)["lockstep.dev/devices"], type=list[Device])


@pytest.mark.parametrize(
    ("option", "domains"),
    [
        ("nvlink=8", [0] * 8),
        ("nvlink=4", [0] * 4 + [1] * 4),
        ("nvlink=0", list(range(8))),
    ],
)
def test_gpus_share_nvlink_domains(option: str, domains: list[int]) -> None:
    gpus = [device for device in devices(f"1x8,{option}") if device.kind == "gpu"]
    assert [gpu.nvlink for gpu in gpus] == domains


def test_devices_are_spread_over_sockets_roots_and_rails() -> None:
    found = devices("1x8,nics=4")
    gpus = [device for device in found if device.kind == "gpu"]
    nics = [device for device in found if device.kind == "nic"]
    assert [gpu.index for gpu in gpus] == list(range(8))
    assert [gpu.numa for gpu in gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [gpu.pcie for gpu in gpus] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [(nic.pcie, nic.rail, nic.numa) for nic in nics] == [
        (0, 0, 0),
        (1, 1, 0),
        (2, 2, 1),
        (3, 3, 1),
    ]
    assert len({device.uuid for device in found}) == len(found)


@pytest.mark.parametrize(
    ("spec", "cpus", "numa"),
    [
        ("1x8,cpus=96,memory=64Gi", ["48000m", "48000m"], [0, 0, 0, 0, 1, 1, 1, 1]),
        ("1x4,cpus=7,memory=64Gi,numa=4", ["1750m"] * 4, [0, 1, 2, 3]),
        ("1x2,cpus=8,memory=64Gi,numa=1", ["8000m"], [0, 0]),
    ],
)
def test_cpus_memory_and_devices_are_spread_over_numa_nodes(
    spec: str, cpus: list[str], numa: list[int]
) -> None:
    [node] = fleet.fleet(parse(spec)).values()
    stated = fleet.inventory(node)["lockstep.dev/numa-nodes"]
    found = msgspec.json.decode(stated, type=list[NumaNode])
    assert [one.cpus for one in found] == cpus
    assert [one.index for one in found] == list(range(len(cpus)))
    assert {one.memory for one in found} == {f"{64 * 1024 // len(cpus)}Mi"}
    assert [gpu.numa for gpu in devices(spec) if gpu.kind == "gpu"] == numa


def test_nics_are_counted_named_and_beside_the_gpus() -> None:
    [node] = fleet.fleet(parse("1x8,gpus-per-root=4,nics=2")).values()
    found = devices("1x8,gpus-per-root=4,nics=2")
    assert fleet.status(node, NOW)["allocatable"]["lockstep.dev/nics"] == "2"
    assert [one.pcie for one in found] == [0, 0, 0, 0, 1, 1, 1, 1, 0, 1]
    assert [(nic.name, nic.speed) for nic in found[8:]] == [("mlx5_0", 400), ("mlx5_1", 400)]


def test_a_dead_node_is_unknown() -> None:
    found = fleet.conditions(ready=False, why="dead", now=NOW, since=NOW)
    assert {condition["status"] for condition in found} == {"Unknown"}
