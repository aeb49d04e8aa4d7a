"""NICs of a process node: chosen as the scheduler says, told to containers, refused with words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.device_tree import DeviceTree

from lockstep.api.wire import convert
from lockstep.devices.core.grants import NotEnough
from lockstep.devices.finding import find
from lockstep.devices.network.tree import Tree
from lockstep.nodes.process.nics import Nics
from lockstep.nodes.process.spec import Pod

V4 = "0000:0000:0000:0000:0000:ffff:0a3c:0001"


@pytest.fixture
def tree(tmp_path: Path) -> DeviceTree:
    """Two RoCE devices."""
    found = DeviceTree(tmp_path)
    for number in (0, 1):
        address = f"0000:{number + 1}7:00.0"
        found.rdma(f"mlx5_{number}", address, "pci0000:15", verbs=number, gids={3 + number: V4})
    return found


def nics(tree: DeviceTree) -> Nics:
    return Nics(find(tree.root).ports, lambda: Tree(tree.root))


def pod(count: int, annotation: str = "") -> Pod:
    notes = {"lockstep.dev/nics": annotation} if annotation else {}
    main = {"name": "main", "resources": {"limits": {"lockstep.dev/nics": str(count)}}}
    meta = {"name": "a", "namespace": "n", "annotations": notes}
    return convert({"metadata": meta, "spec": {"containers": [main]}}, Pod)


@pytest.mark.parametrize(
    ("asked", "used", "given"),
    [
        (pod(1), [], [0]),
        (pod(1, "1"), [], [1]),
        (pod(1), [0], [1]),
        (pod(0), [0, 1], []),
        (pod(1, "1"), [1], "NIC 1 is in use by another pod"),
        (pod(2), [0], "2 NICs requested, 1 of 2 are free"),
        (pod(1, "first"), [], "annotation lockstep.dev/nics is 'first', not a list of NIC"),
    ],
)
def test_nics_are_those_the_scheduler_chose_or_the_lowest_free(
    tree: DeviceTree, asked: Pod, used: list[int], given: list[int] | str
) -> None:
    if isinstance(given, str):
        with pytest.raises(NotEnough, match=given):
            nics(tree).choose(asked, used)
    else:
        assert nics(tree).choose(asked, used) == given


def test_a_nic_whose_link_is_down_is_not_given(tree: DeviceTree) -> None:
    tree.link("mlx5_0", up=False)
    assert nics(tree).choose(pod(1), []) == [1]


def test_containers_are_told_their_nics_and_gids(tree: DeviceTree) -> None:
    told = nics(tree).variables([1])
    assert told["PCIDEVICE_LOCKSTEP_DEV_NICS"] == "0000:27:00.0"
    assert (told["LOCKSTEP_HCAS"], told["NCCL_IB_HCA"]) == ("mlx5_1", "=mlx5_1")
    assert (told["LOCKSTEP_GID_INDICES"], told["NCCL_IB_GID_INDEX"]) == ("mlx5_1:4", "4")
    assert "NCCL_IB_GID_INDEX" not in nics(tree).variables([0, 1])
    assert Nics().variables([]) == {}
