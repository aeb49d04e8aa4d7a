"""What the kernel shows of a machine's devices below ``/sys`` and ``/proc``.

Every function takes the tree's root, so that another machine's can be read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lockstep.api.devices import NumaNode
from lockstep.devices.core.model import UNKNOWN, Port

ROOT = Path("/")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_COMPLEX = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Function:
    """One PCI function and where it hangs; speeds are as the kernel writes them."""

    address: str
    vendor: int
    device: int
    class_: int
    root: str = ""
    bridges: tuple[str, ...] = ()
    numa: int = UNKNOWN
    speed: str = ""
    width: int = 0
    virtual: bool = False
    render: str = ""
    card: str = ""


def functions(root: Path = ROOT) -> Iterator[Function]:
    """Yield the machine's PCI functions by address."""
    places = root / "sys/bus/pci/devices"
    for place in sorted(places.glob("*"), key=lambda place: place.name):
        found = function(place.name, root)
        if found is not None:
            yield found


def function(address: str, root: Path = ROOT) -> Function | None:
    """Return the PCI function at *address*; none when the kernel knows none."""
    place = root / "sys/bus/pci/devices" / address
    if not address or not place.is_dir():
        return None
    parts = place.resolve().parts
    above = [number for number, part in enumerate(parts) if _COMPLEX.fullmatch(part)]
    chain = parts[above[0] + 1 :] if above else ()
    drawn = sorted(one.name for one in (place / "drm").glob("*"))
    return Function(
        address,
        _hex(place / "vendor"),
        _hex(place / "device"),
        _hex(place / "class") >> 8,
        parts[above[0]] if above else "",
        tuple(part for part in chain if _PCI.fullmatch(part))[:-1],
        _numa(place),
        read(place / "max_link_speed"),
        _first_number(read(place / "max_link_width")),
        (place / "physfn").exists(),
        next((name for name in drawn if name.startswith("renderD")), ""),
        next((name for name in drawn if name.startswith("card")), ""),
    )


def ports(root: Path = ROOT) -> list[Port]:
    """Return the RDMA devices of the machine, in the order of their names."""
    places = sorted((root / "sys/class/infiniband").glob("*"), key=lambda one: natural(one.name))
    found = []
    for index, place in enumerate(places):
        address = (place / "device").resolve().name
        hangs = function(address, root) or Function(address, 0, 0, 0)
        found.append(
            Port(
                index=index,
                name=place.name,
                pci=address if _PCI.fullmatch(address) else "",
                root=hangs.root,
                bridges=list(hangs.bridges),
                numa=hangs.numa,
                speed=_first_number(read(place / "ports/1/rate")),
                interfaces=sorted(one.name for one in (place / "device/net").glob("*")),
                virtual=hangs.virtual,
                active="ACTIVE" in read(place / "ports/1/state"),
                link=read(place / "ports/1/link_layer").lower(),
            )
        )
    return found


def nvidia_cards(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return what NVIDIA's kernel module says of each card, by PCI address."""
    found = {}
    for file in (root / "proc/driver/nvidia/gpus").glob("*/information"):
        lines = (line.partition(":") for line in read(file).splitlines())
        found[file.parent.name] = {key.strip(): value.strip() for key, _, value in lines}
    return found


def numa_nodes(cpus: Iterable[int] | None = None, root: Path = ROOT) -> list[NumaNode]:
    """Return the NUMA nodes with those of their CPUs that are among *cpus* (all by default)."""
    usable = None if cpus is None else set(cpus)
    found = []
    for place in (root / "sys/devices/system/node").glob("node*"):
        number = place.name.removeprefix("node")
        here = set(_listed(read(place / "cpulist")))
        here = here if usable is None else here & usable
        if number.isdecimal() and here:
            total = re.search(r"MemTotal:\s+(\d+) kB", read(place / "meminfo"))
            memory = f"{total[1]}Ki" if total else 0
            found.append(NumaNode(index=int(number), cpus=len(here), memory=memory))
    return sorted(found, key=lambda node: node.index)


def _numa(place: Path) -> int:
    text = read(place / "numa_node")
    return int(text) if re.fullmatch(r"-?\d+", text) else UNKNOWN


def _listed(text: str) -> Iterator[int]:
    """Return the numbers of a list such as ``0-3,8``."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        yield from range(int(first), int(last or first) + 1)


def _first_number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


def _hex(path: Path) -> int:
    text = read(path)
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", text) else 0


def natural(name: str) -> list[tuple[int, int | str]]:
    """Return a sort key by which ``mlx5_2`` comes before ``mlx5_10``."""
    return [(0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", name) if p]


def read(path: Path) -> str:
    """Return a small file's text; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
