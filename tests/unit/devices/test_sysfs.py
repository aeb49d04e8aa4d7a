"""What is read off a tree as the kernel shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.device_tree import DeviceTree

from lockstep.api.devices import NumaNode
from lockstep.devices import finding, sysfs
from lockstep.devices.core import stated


@pytest.fixture
def tree(tmp_path: Path) -> DeviceTree:
    """Two sockets, a root below each, a GPU and an RDMA device below each root."""
    found = DeviceTree(tmp_path)
    for socket, root in enumerate(("pci0000:17", "pci0000:9b")):
        found.pci(f"0000:{socket}a:00.0", root, vendor=0x10DE, class_=0x030200, numa=socket)
        found.rdma(f"mlx5_{socket}", f"0000:{socket}b:00.0", root, numa=socket, active=socket == 1)
        found.numa(socket, f"{socket * 4}-{socket * 4 + 2},{socket * 4 + 3}")
    return found


def test_devices_get_the_root_and_the_numa_node_above_them(tree: DeviceTree) -> None:
    found = stated.devices(finding.find(tree.root))
    assert [(one.kind, one.index, one.numa, one.pcie) for one in found] == [
        ("gpu", 0, 0, 0),
        ("gpu", 1, 1, 1),
        ("nic", 0, 0, 0),
        ("nic", 1, 1, 1),
    ]
    assert [(nic.name, nic.speed, nic.healthy) for nic in found[2:]] == [
        ("mlx5_0", 400, False),
        ("mlx5_1", 400, True),
    ]


def test_an_empty_tree_has_nothing(tmp_path: Path) -> None:
    found = finding.find(tmp_path)
    assert (found.cards, found.ports, found.numa_nodes) == ([], [], [])


def test_numa_nodes_have_the_cpus_that_may_be_used(tree: DeviceTree) -> None:
    assert sysfs.numa_nodes([0, 1, 4, 5, 6, 99], tree.root) == [
        NumaNode(index=0, cpus=2, memory="65536Ki"),
        NumaNode(index=1, cpus=3, memory="65536Ki"),
    ]


def test_switches_between_root_and_card_are_named(tree: DeviceTree) -> None:
    tree.pci(
        "0000:c5:00.0",
        "pci0000:c0",
        above=["0000:c0:01.1", "0000:c1:00.0", "0000:c2:08.0"],
        vendor=0x10DE,
        class_=0x030200,
    )
    [card] = [one for one in finding.find(tree.root).cards if one.pci == "0000:c5:00.0"]
    assert card.root == "pci0000:c0"
    assert card.bridges == ["0000:c0:01.1", "0000:c1:00.0", "0000:c2:08.0"]


def test_two_roots_of_one_numa_node_stay_apart(tree: DeviceTree) -> None:
    tree.pci("0000:2a:00.0", "pci0000:29", vendor=0x10DE, class_=0x030200, numa=0)
    found = finding.find(tree.root)
    first, other = [one for one in stated.devices(found) if one.kind == "gpu" and one.numa == 0]
    assert (first.numa, other.numa) == (0, 0)
    assert first.pcie != other.pcie


def test_nvidia_module_tells_identity_and_minor(tree: DeviceTree) -> None:
    tree.nvidia("0000:0a:00.0", "GPU-1234", minor=3, model="NVIDIA H200")
    card = finding.find(tree.root).cards[0]
    assert (card.uuid, card.minor, card.model, card.nodes) == (
        "GPU-1234",
        3,
        "NVIDIA H200",
        ["/dev/nvidia3"],
    )


def test_virtual_functions_are_marked(tree: DeviceTree) -> None:
    tree.rdma("mlx5_2", "0000:0b:00.2", "pci0000:17", virtual=True)
    assert [port.virtual for port in sysfs.ports(tree.root)] == [False, False, True]


@pytest.mark.parametrize(
    ("numbers", "resource", "nodes"),
    [
        ((0x19E5, 0xD802, 0x120000), "huawei.com/Ascend910", ["/dev/davinci0"]),
        ((0x19E5, 0xD500, 0x120000), "huawei.com/Ascend310P", ["/dev/davinci0"]),
        ((0xCABC, 0x0370, 0x120000), "cambricon.com/mlu", ["/dev/cambricon_dev0"]),
        ((0x1D94, 0x6210, 0x120000), "hygon.com/dcu", ["/dev/dri/renderD128", "/dev/dri/card1"]),
        ((0x1E3E, 0x0001, 0x120000), "iluvatar.com/gpu", ["/dev/iluvatar0"]),
        (
            (0x9999, 0x4001, 0x120000),
            "metax-tech.com/gpu",
            ["/dev/dri/renderD128", "/dev/dri/card1"],
        ),
        ((0x1ED5, 0x0222, 0x030200), "mthreads.com/gpu", ["/dev/mtgpu.0"]),
        ((0x1E36, 0x0001, 0x120000), "enflame.com/gcu", ["/dev/gcu0"]),
        ((0x1D22, 0x3684, 0x120000), "kunlunxin.com/xpu", ["/dev/xpu0"]),
        ((0x1D0F, 0x7164, 0x088000), "aws.amazon.com/neurondevice", ["/dev/neuron0"]),
        ((0x1002, 0x74A1, 0x120000), "amd.com/gpu", ["/dev/dri/renderD128", "/dev/dri/card1"]),
        ((0x1EC6, 0x0100, 0x120000), "vastaitech.com/va", ["/dev/va0"]),
        ((0x1EE0, 0x0100, 0x120000), "birentech.com/gpu", ["/dev/biren/card_0"]),
    ],
)
def test_every_vendor_is_found_by_its_pci_numbers(
    tmp_path: Path, numbers: tuple[int, int, int], resource: str, nodes: list[str]
) -> None:
    vendor, device, class_ = numbers
    tree = DeviceTree(tmp_path)
    tree.pci("0000:01:00.0", "pci0000:00", vendor=vendor, device=device, class_=class_, drm=1)
    [card] = finding.find(tree.root).cards
    assert (card.resource, card.nodes) == (resource, nodes)


@pytest.mark.parametrize(
    ("vendor", "device", "class_"),
    [(0x19E5, 0xD302, 0x020000), (0x10DE, 0x22A3, 0x068000), (0x1D0F, 0xEFA1, 0x020000)],
    ids=["a NIC of Huawei's", "an NVSwitch", "a NIC of Amazon's"],
)
def test_other_devices_of_a_vendor_are_no_accelerators(
    tmp_path: Path, vendor: int, device: int, class_: int
) -> None:
    tree = DeviceTree(tmp_path)
    tree.pci("0000:01:00.0", "pci0000:00", vendor=vendor, device=device, class_=class_)
    assert finding.find(tree.root).cards == []
