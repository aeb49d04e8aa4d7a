"""Which NICs are handed out, and what a container gets of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.device_tree import DeviceTree

from lockstep.api.devices import gid_variables
from lockstep.compat.nic_plugins import read
from lockstep.devices.core.stated import devices
from lockstep.devices.finding import find
from lockstep.devices.network.candidates import seen
from lockstep.devices.network.core.offers import Offers, offers, variables
from lockstep.devices.network.tree import Tree

PF, OTHER = "0000:17:00.0", "0000:97:00.0"
V4 = "0000:0000:0000:0000:0000:ffff:0a3c:0001"
LOCAL = "fe80:0000:0000:0000:0000:0000:0000:0001"
SRIOV = {"resourceName": "vfs", "resourcePrefix": "mellanox.com"}
SHARED = {"resourceName": "hca", "rdmaHcaMax": 3, "selectors": {"vendors": ["15b3"]}}


@pytest.fixture
def tree(tmp_path: Path) -> DeviceTree:
    """Two RoCE devices; the first has two VFs."""
    found = DeviceTree(tmp_path)
    found.rdma("mlx5_0", PF, "pci0000:15", numa=0, verbs=0, gids={1: LOCAL, 3: V4})
    found.rdma("mlx5_1", OTHER, "pci0000:90", numa=1, verbs=1, gids={5: V4})
    for number in (0, 1):
        found.virtual_function(PF, number, f"mlx5_{2 + number}", verbs=2 + number)
    return found


def offered(tree: DeviceTree, **config: Any) -> Offers:
    resources, problems = read(json.dumps(config)) if config else ([], [])
    assert problems == []
    return offers(seen(Tree(tree.root)), resources)


def by_resource(found: Offers) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for card in found.cards:
        names.setdefault(card.resource, []).append(card.uuid)
    return names


def test_every_rdma_device_is_our_own_without_a_config(tree: DeviceTree) -> None:
    found = offered(tree)
    assert by_resource(found) == {
        "lockstep.dev/nics": [PF, OTHER, "0000:17:00.1", "0000:17:00.2"],
    }
    # The indices are those that the node states to the scheduler.
    stated = {one.name: one.index for one in devices(find(tree.root))}
    assert {card.model: card.index for card in found.cards} == stated


def test_a_nic_of_a_plugins_resource_is_not_our_own(tree: DeviceTree) -> None:
    listed = [{**SRIOV, "selectors": {"pciAddresses": ["0000:17:00.1", "0000:17:00.2"]}}]
    found = offered(tree, resourceList=listed)
    assert by_resource(found) == {
        "mellanox.com/vfs": ["0000:17:00.1", "0000:17:00.2"],
        "lockstep.dev/nics": [PF, OTHER],
    }
    assert found.aside == {"mlx5_2", "mlx5_3"}


def test_a_container_gets_what_the_sriov_plugin_hands_out(tree: DeviceTree) -> None:
    listed = [{**SRIOV, "selectors": {"isRdma": True, "pciAddresses": ["0000:17:00.1"]}}]
    found = offered(tree, resourceList=listed)
    (card,) = (one for one in found.cards if one.resource == "mellanox.com/vfs")
    told = variables(found, [card])
    assert told["PCIDEVICE_MELLANOX_COM_VFS"] == "0000:17:00.1"
    assert json.loads(told["PCIDEVICE_MELLANOX_COM_VFS_INFO"])["0000:17:00.1"]["rdma"] == {
        "rdma_cm": "/dev/infiniband/rdma_cm",
        "umad": "/dev/infiniband/umad2",
        "uverbs": "/dev/infiniband/uverbs2",
    }
    assert told["NCCL_IB_HCA"] == "=mlx5_2"
    assert card.nodes[-1] == "/dev/infiniband/rdma_cm"
    assert (card.root, card.numa) == ("pci0000:15", 0)


def test_without_rdma_and_topology_neither_is_told(tree: DeviceTree) -> None:
    stated = {**SRIOV, "excludeTopology": True, "selectors": {"pciAddresses": [PF]}}
    found = offered(tree, resourceList=[stated])
    card = found.cards[0]
    assert (card.nodes, card.numa) == ([], -1)
    assert set(variables(found, [card])) == {
        "PCIDEVICE_MELLANOX_COM_VFS",
        "PCIDEVICE_MELLANOX_COM_VFS_INFO",
    }


def test_each_shared_handle_is_all_its_hcas(tree: DeviceTree) -> None:
    tree.link("mlx5_1", up=False)
    found = offered(tree, configList=[SHARED])
    assert by_resource(found) == {"rdma/hca": ["0", "1", "2"]}
    files = found.cards[0].nodes
    assert "/dev/infiniband/uverbs0" in files
    assert "/dev/infiniband/uverbs1" not in files
    assert {card.trouble for card in found.cards} == {""}
    assert variables(found, found.cards[:1]) == {}


def test_a_nic_whose_link_is_down_is_withdrawn(tree: DeviceTree) -> None:
    tree.link("mlx5_1", up=False)
    trouble = {card.model: card.trouble for card in offered(tree).cards}
    assert trouble["mlx5_1"] == "the port is DOWN"
    assert trouble["mlx5_0"] == ""


def test_a_vf_goes_with_the_link_of_its_physical_function(tree: DeviceTree) -> None:
    net = tree.root / "sys/class/net/ens1f0"
    net.mkdir(parents=True)
    (net / "carrier").write_text("0\n")
    (tree.root / "sys/bus/pci/devices" / PF / "net/ens1f0").mkdir(parents=True)
    trouble = {card.model: card.trouble for card in offered(tree).cards}
    assert trouble["mlx5_2"] == "the link of its physical function ens1f0 is down"


@pytest.mark.parametrize(
    ("gids", "told"),
    [
        ({}, {}),
        ({"a": 3, "b": 3}, {"LOCKSTEP_GID_INDICES": "a:3,b:3", "NCCL_IB_GID_INDEX": "3"}),
        ({"a": 3, "b": 5}, {"LOCKSTEP_GID_INDICES": "a:3,b:5", "NCCL_IB_ROCE_VERSION_NUM": "2"}),
        ({"a": 3, "b": -1}, {"LOCKSTEP_GID_INDICES": "a:3", "NCCL_IB_ROCE_VERSION_NUM": "2"}),
        ({"a": -1}, {"NCCL_IB_ROCE_VERSION_NUM": "2"}),
    ],
)
def test_one_gid_index_only_where_all_devices_have_it(
    gids: dict[str, int], told: dict[str, str]
) -> None:
    assert gid_variables(gids) == told


def test_the_node_states_the_entry_with_the_address(tree: DeviceTree) -> None:
    stated = {one.name: one.gid for one in devices(find(tree.root))}
    assert stated == {"mlx5_0": 3, "mlx5_1": 5, "mlx5_2": -1, "mlx5_3": -1}
