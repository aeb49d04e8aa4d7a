"""How devices are connected, read off a tree as the kernel shows it."""

from pathlib import Path

import pytest

from lockstep.api.devices import Device, NumaNode
from lockstep.nodes.process import connections


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A machine with two sockets, a root below each, a GPU and an RDMA device below each root."""
    for socket, root in enumerate(("pci0000:17", "pci0000:9b")):
        for slot, name in (
            (f"0000:{socket}a:00.0", ""),
            (f"0000:{socket}b:00.0", f"mlx5_{socket}"),
        ):
            place = tmp_path / "devices" / root / "0000:00:01.0" / slot
            place.mkdir(parents=True)
            (place / "numa_node").write_text(f"{socket}\n")
            _link(tmp_path / "bus/pci/devices" / slot, place)
            if name:
                port = tmp_path / "class/infiniband" / name / "ports/1"
                port.mkdir(parents=True)
                (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
                (port / "state").write_text("4: ACTIVE\n" if socket else "1: DOWN\n")
                _link(port.parents[1] / "device", place)
        node = tmp_path / f"devices/system/node/node{socket}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{socket * 4}-{socket * 4 + 2},{socket * 4 + 3}\n")
        (node / "meminfo").write_text(f"Node {socket} MemTotal:       65536 kB\n")
    return tmp_path


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def test_devices_get_the_root_and_the_numa_node_above_them(sysfs):
    known = [(Device(index=i), f"0000:{i}a:00.0") for i in range(2)]
    found = connections.placed([*known, *connections.nics(sysfs)], sysfs)
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


def test_what_the_kernel_does_not_tell_is_unknown(tmp_path):
    assert connections.nics(tmp_path) == []
    assert connections.numa_nodes([0], tmp_path) == []
    [found] = connections.placed([(Device(index=0), "0000:1a:00.0")], tmp_path)
    assert (found.numa, found.pcie) == (-1, -1)


def test_numa_nodes_have_the_cpus_that_may_be_used(sysfs):
    assert connections.numa_nodes([0, 1, 4, 5, 6, 99], sysfs) == [
        NumaNode(index=0, cpus=2, memory="65536Ki"),
        NumaNode(index=1, cpus=3, memory="65536Ki"),
    ]
