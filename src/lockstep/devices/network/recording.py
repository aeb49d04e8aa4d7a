"""Writes down what the network's checks see of a machine: files by name, and tools' answers.

Nothing else is copied: no environment, no keys, and of the kernel's command line only the words
about the IOMMU.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lockstep.compat.vendors import recognise
from lockstep.devices import sysfs
from lockstep.devices.network.inventory import HCAS, NET
from lockstep.devices.network.tree import TOOLS, TOOLS_BY_NETDEV, Tree

NETDEV_FILES: Final = (
    *("type", "address", "mtu", "speed", "operstate", "carrier", "carrier_changes"),
    *("ecn/roce_np/enable/*", "ecn/roce_rp/enable/*", "bonding/slaves"),
    *("bridge/bridge_id", "tun_flags", "wireless/status"),
)
HCA_FILES: Final = (
    *("fw_ver", "node_type", "ports/*/state", "ports/*/phys_state", "ports/*/rate"),
    *("ports/*/link_layer", "ports/*/active_mtu", "ports/*/gids/*", "ports/*/gid_attrs/types/*"),
    *("ports/*/gid_attrs/ndevs/*", "ports/*/counters/*", "ports/*/hw_counters/*"),
    "tc/*/traffic_class",
)
PCI_FILES: Final = (
    *("vendor", "device", "class", "numa_node", "max_link_speed", "max_link_width"),
    *("current_link_speed", "current_link_width", "sfnum"),
)
PROC_FILES: Final = (
    *("proc/modules", "proc/self/limits"),
    *(f"proc/sys/net/ipv4/conf/*/{name}" for name in ("arp_ignore", "arp_announce", "rp_filter")),
)
LONGEST: Final = 1 << 20


def record(folder: Path, root: Path = sysfs.ROOT) -> int:
    """Write the tree of the machine, or of another recorded one, into *folder*.

    Returns how many files it has.

    Raises:
        ValueError: when the folder holds something already.
        OSError: when it cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; name a new folder")
    tree = Tree(root)
    count = 0
    for name in tree.names(NET):
        count += _class(tree, folder, f"{NET}/{name}", NETDEV_FILES)
    for name in tree.names(HCAS):
        count += _class(tree, folder, f"{HCAS}/{name}", HCA_FILES)
    for kind in ("infiniband_verbs", "infiniband_mad"):
        for name in tree.names(f"sys/class/{kind}"):
            count += _class(tree, folder, f"sys/class/{kind}/{name}", ("ibdev",))
    for address in _functions(tree):
        count += _function(tree, folder, address)
    for pattern in PROC_FILES:
        count += sum(_copy(tree, folder, one) for one in _matching(tree, pattern))
    count += _words(tree, folder)
    for name in tree.names("dev/infiniband"):
        place = folder / "dev/infiniband" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return count + _tools(tree, folder)


def _matching(tree: Tree, pattern: str) -> Iterator[str]:
    for place in sorted(tree.root.glob(pattern)):
        if place.is_file():
            yield str(place.relative_to(tree.root))


def _copy(tree: Tree, folder: Path, path: str) -> int:
    text = tree.text(path)[:LONGEST]
    if not text:
        return 0
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text + "\n")
    return 1


def _class(tree: Tree, folder: Path, place: str, patterns: tuple[str, ...]) -> int:
    """Copy files of a class's device, and its link to the PCI function that it stands on."""
    (folder / place).mkdir(parents=True, exist_ok=True)
    count = sum(
        _copy(tree, folder, path)
        for pattern in patterns
        for path in _matching(tree, f"{place}/{pattern}")
    )
    device = tree.path(f"{place}/device")
    if device.exists():
        target = device.resolve().relative_to(tree.root.resolve())
        (folder / target).mkdir(parents=True, exist_ok=True)
        link = folder / place / "device"
        link.symlink_to(os.path.relpath(folder / target, link.parent))
        for netdev in tree.names(f"{place}/device/net"):
            (folder / target / "net" / netdev).mkdir(parents=True, exist_ok=True)
    return count


def _functions(tree: Tree) -> list[str]:
    """Return the PCI functions that are NICs or accelerators."""
    nics = {
        tree.path(f"{kind}/{name}/device").resolve().name
        for kind in (NET, HCAS)
        for name in tree.names(kind)
    }
    cards = {
        f.address for f in sysfs.functions(tree.root) if recognise(f.vendor, f.device, f.class_)
    }
    return sorted((nics | cards) & set(tree.names("sys/bus/pci/devices")))


def _function(tree: Tree, folder: Path, address: str) -> int:
    place = tree.path(f"sys/bus/pci/devices/{address}").resolve()
    target = place.relative_to(tree.root.resolve())
    (folder / target).mkdir(parents=True, exist_ok=True)
    link = folder / "sys/bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(folder / target, link.parent))
    if (place / "physfn").exists():
        (folder / target / "physfn").mkdir(exist_ok=True)
    if (place / "driver").exists():
        driver = (place / "driver").resolve().name
        (folder / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        there = folder / target / "driver"
        there.symlink_to(os.path.relpath(folder / "sys/bus/pci/drivers" / driver, there.parent))
    return sum(_copy(tree, folder, str(target / name)) for name in PCI_FILES)


def _words(tree: Tree, folder: Path) -> int:
    """Write down the words of the kernel's command line about the IOMMU, and what this may do."""
    words = [one for one in tree.text("proc/cmdline").split() if "iommu" in one]
    (folder / "proc/self").mkdir(parents=True, exist_ok=True)
    (folder / "proc/cmdline").write_text(" ".join(words) + "\n")
    lines = tree.text("proc/self/status").splitlines()
    kept = [line for line in lines if line.startswith("CapEff")]
    (folder / "proc/self/status").write_text("\n".join(kept) + "\n")
    return 2


def _tools(tree: Tree, folder: Path) -> int:
    count = 0
    questions = [(name, "") for name in TOOLS]
    questions += [(name, dev) for name in TOOLS_BY_NETDEV for dev in tree.names(NET) if dev != "lo"]
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    for name, netdev in questions:
        said = tree.tool(name, netdev)
        if said:
            (folder / "tools" / (f"{name}-{netdev}" if netdev else name)).write_text(said)
            count += 1
    return count
