"""The inventory of a machine, from NVML and from what its kernel shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from lockstep.compat.vendors import VENDORS, Vendor, recognise
from lockstep.devices import nvml, sysfs
from lockstep.devices.core.model import Card, Inventory, Port
from lockstep.devices.network.core.model import roce_gid
from lockstep.devices.network.inventory import HCAS, PORT, gids
from lockstep.devices.network.tree import Tree


def anything(root: Path = sysfs.ROOT) -> bool:
    """Tell whether there is any device that an agent could find; cheap."""
    return (
        nvml.present()
        or any((root / "sys/class/infiniband").glob("*"))
        or any(recognise(one.vendor, one.device, one.class_) for one in sysfs.functions(root))
    )


def find(root: Path = sysfs.ROOT, cpus: Iterable[int] | None = None) -> Inventory:
    """Return the machine's devices; with another *root*, those of the tree saved there.

    NUMA nodes are counted with those of their CPUs that are among *cpus*, all by default.
    """
    cards, why = nvml.find() if root == sysfs.ROOT else ([], "")
    hung = [_placed(card, root) for card in cards]
    seen = {card.pci for card in hung}
    others = [one for one in _by_pci(root, why) if one.pci not in seen]
    remarks = [why] if why and any(one.vendor == "nvidia" for one in others) else []
    return Inventory(
        cards=[*hung, *others],
        ports=[_with_gid(port, root) for port in sysfs.ports(root)],
        numa_nodes=sysfs.numa_nodes(cpus, root),
        remarks=remarks,
    )


def _placed(card: Card, root: Path) -> Card:
    """Return a card that NVML knows with what the kernel shows of its place."""
    vendor = VENDORS[0]
    hangs = sysfs.function(card.pci, root)
    nodes = _nodes(vendor, card.minor, hangs)
    if hangs is None:
        return replace(card, nodes=nodes)
    return replace(
        card,
        root=hangs.root,
        bridges=list(hangs.bridges),
        numa=hangs.numa,
        link_speed=hangs.speed,
        link_width=hangs.width or card.link_width,
        nodes=nodes,
    )


def _with_gid(port: Port, root: Path) -> Port:
    table = gids(Tree(root), f"{HCAS}/{port.name}/{PORT}") if port.link == "ethernet" else ()
    return replace(port, gid=roce_gid(table))


def _by_pci(root: Path, why: str) -> Iterator[Card]:
    """Return the accelerators on the PCI bus, numbered by address within each vendor."""
    numbers: Counter[str] = Counter()
    told = sysfs.nvidia_cards(root)
    for hangs in sysfs.functions(root):
        vendor = recognise(hangs.vendor, hangs.device, hangs.class_)
        if vendor is None:
            continue
        index = numbers[vendor.resource]
        numbers[vendor.resource] += 1
        said = told.get(hangs.address, {})
        minor = said.get("Device Minor", "")
        number = int(minor) if minor.isdecimal() else index
        yield Card(
            index=index,
            uuid=said.get("GPU UUID", ""),
            vendor=vendor.name,
            resource=vendor.resource,
            model=said.get("Model", "") or f"{hangs.vendor:04x}:{hangs.device:04x}",
            minor=number,
            pci=hangs.address,
            root=hangs.root,
            bridges=list(hangs.bridges),
            numa=hangs.numa,
            link_speed=hangs.speed,
            link_width=hangs.width,
            nodes=_nodes(vendor, number, hangs),
            trouble=why if vendor.name == "nvidia" else "",
        )


def _nodes(vendor: Vendor, number: int, hangs: sysfs.Function | None) -> list[str]:
    """Return the device files of one card."""
    if number < 0:
        return []
    render, card = (hangs.render, hangs.card) if hangs is not None else ("", "")
    filled = [one.format(n=number, render=render, card=card) for one in vendor.nodes]
    return [one for one in filled if not one.endswith("/")]
