"""Each NIC of a machine is listed, with an RDMA device or without, with a driver or without."""

from __future__ import annotations

from pathlib import Path

from lockstep.devices.network.inventory import nics
from lockstep.devices.network.tree import Tree

ROOT = "sys/devices/pci0000:00/0000:00:01.0"


def machine(root: Path) -> Tree:
    """Return the tree of a machine with four functions, as recordings of sysfs hold it."""

    def write(place: str, text: str) -> None:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text + "\n")

    def link(place: str, target: str) -> None:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(root / target)

    (root / "sys/bus/pci/drivers/igb").mkdir(parents=True)
    for number, (kind, name) in enumerate(
        [("0x020000", "eth0"), ("0x020000", "eth1"), ("0x028000", ""), ("0x030200", "")]
    ):
        address = f"0000:0{number + 1}:00.0"
        place = f"{ROOT}/{address}"
        write(f"{place}/class", kind)
        write(f"{place}/vendor", "0x8086")
        write(f"{place}/device", "0x1521")
        write(f"{place}/numa_node", "1")
        link(f"sys/bus/pci/devices/{address}", place)
        if name:
            link(f"{place}/driver", "sys/bus/pci/drivers/igb")
            link(f"sys/class/net/{name}", f"{place}/net/{name}")
            write(f"{place}/net/{name}/speed", "10000")
            link(f"{place}/net/{name}/device", place)
    write(f"{ROOT}/0000:01:00.0/net/eth0/type", "1")
    write("sys/class/net/lo/type", "772")
    write("sys/class/net/dummy0/address", "02:00:00:00:00:01")
    return Tree(root)


def test_every_network_function_is_listed_once(tmp_path: Path) -> None:
    found = {nic.name: nic for nic in nics(machine(tmp_path))}
    assert sorted(found) == ["0000:03:00.0", "eth0", "eth1"]
    assert {(one.rate, one.driver, one.numa) for name, one in found.items() if "eth" in name} == {
        (10.0, "igb", 1)
    }
    bare = found["0000:03:00.0"]
    assert (bare.kind, bare.up, bare.driver, bare.root) == ("pf", False, "", "pci0000:00")
