"""How this machine's devices are connected, as far as the kernel tells: roots, NUMA nodes, NICs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from lockstep.api.devices import Device, NumaNode

SYSFS = Path("/sys")
UNKNOWN = -1


def nics(sysfs: Path = SYSFS) -> list[tuple[Device, str]]:
    """Return the RDMA devices of the machine with their PCI addresses, in the order of names."""
    found = []
    places = sorted((sysfs / "class/infiniband").glob("*"), key=lambda place: _natural(place.name))
    for index, place in enumerate(places):
        device = Device(
            index=index,
            kind="nic",
            name=place.name,
            rail=index,
            speed=_first_number(_read(place / "ports/1/rate")),
            healthy="ACTIVE" in _read(place / "ports/1/state"),
        )
        found.append((device, (place / "device").resolve().name))
    return found


def placed(devices: Sequence[tuple[Device, str]], sysfs: Path = SYSFS) -> list[Device]:
    """Return devices, given with their PCI addresses, with their NUMA nodes and PCIe roots."""
    roots = [_root(address, sysfs) for _, address in devices]
    numbers = {root: number for number, root in enumerate(sorted(set(roots) - {""}))}
    return [
        replace(device, numa=_numa(address, sysfs), pcie=numbers.get(root, UNKNOWN))
        for (device, address), root in zip(devices, roots, strict=True)
    ]


def numa_nodes(cpus: Iterable[int], sysfs: Path = SYSFS) -> list[NumaNode]:
    """Return the machine's NUMA nodes with those of their CPUs that are among *cpus*."""
    usable, found = set(cpus), []
    for place in (sysfs / "devices/system/node").glob("node*"):
        number = place.name.removeprefix("node")
        here = usable & set(_listed(_read(place / "cpulist")))
        if number.isdecimal() and here:
            total = re.search(r"MemTotal:\s+(\d+) kB", _read(place / "meminfo"))
            memory = f"{total[1]}Ki" if total else 0
            found.append(NumaNode(index=int(number), cpus=len(here), memory=memory))
    return sorted(found, key=lambda node: node.index)


def _root(address: str, sysfs: Path) -> str:
    """Return the root complex above a PCI device, such as ``pci0000:17``; empty where unknown."""
    path = (sysfs / "bus/pci/devices" / address).resolve()
    above = (part for part in path.parts if re.fullmatch(r"pci[0-9a-f]{4,}:[0-9a-f]{2}", part))
    return next(above, "") if address else ""


def _numa(address: str, sysfs: Path) -> int:
    text = _read(sysfs / "bus/pci/devices" / address / "numa_node") if address else ""
    return int(text) if re.fullmatch(r"-?\d+", text) else UNKNOWN


def _listed(text: str) -> list[int]:
    """Return the numbers of a list such as ``0-3,8``."""
    found: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found += range(int(first), int(last or first) + 1)
    return found


def _first_number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


def _natural(name: str) -> list[tuple[int, int | str]]:
    return [(0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", name) if p]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
