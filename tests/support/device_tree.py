"""Trees of ``/sys`` and ``/proc`` as the kernel of a machine with devices shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


class DeviceTree:
    """A tree that is built device by device."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys").mkdir(parents=True, exist_ok=True)

    def pci(
        self,
        address: str,
        root: str,
        *,
        above: Sequence[str] = ("0000:00:01.0",),
        vendor: int = 0x8086,
        device: int = 0x1,
        class_: int = 0x020000,
        numa: int = -1,
        drm: int | None = None,
    ) -> Path:
        """Add a PCI function below a root complex, with the bridges above it."""
        place = self.root / "sys/devices" / root / Path(*above) / address
        place.mkdir(parents=True)
        for name, text in (
            ("vendor", f"{vendor:#06x}"),
            ("device", f"{device:#06x}"),
            ("class", f"{class_:#08x}"),
            ("numa_node", str(numa)),
            ("max_link_speed", "32.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ):
            (place / name).write_text(f"{text}\n")
        if drm is not None:
            for name in (f"card{drm}", f"renderD{127 + drm}"):
                (place / "drm" / name).mkdir(parents=True)
        self._link(self.root / "sys/bus/pci/devices" / address, place)
        return place

    def rdma(
        self,
        name: str,
        address: str,
        root: str,
        *,
        numa: int = -1,
        active: bool = True,
        virtual: bool = False,
        verbs: int | None = None,
        gids: Mapping[int, str] | None = None,
        above: Sequence[str] = ("0000:00:01.0",),
    ) -> None:
        """Add an RDMA device on a PCI function of its own.

        With *verbs* it has the device files of that number; with *gids* it speaks RoCE, and these
        are its entries of version 2.
        """
        place = self.pci(address, root, vendor=0x15B3, numa=numa, above=above)
        if virtual:
            (place / "physfn").mkdir()
        port = self.root / "sys/class/infiniband" / name / "ports/1"
        port.mkdir(parents=True)
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
        (port / "state").write_text("4: ACTIVE\n" if active else "1: DOWN\n")
        self._link(port.parents[1] / "device", place)
        if gids is not None:
            (port / "link_layer").write_text("Ethernet\n")
        for index, gid in (gids or {}).items():
            self._file(port / "gids" / str(index), gid)
            self._file(port / "gid_attrs/types" / str(index), "RoCE v2")
        for kind, file in (("verbs", "uverbs"), ("mad", "umad")) if verbs is not None else ():
            self._file(self.root / f"sys/class/infiniband_{kind}/{file}{verbs}/ibdev", name)

    def link(self, name: str, *, up: bool) -> None:
        """Let the port of an RDMA device come or go."""
        port = self.root / "sys/class/infiniband" / name / "ports/1"
        (port / "state").write_text("4: ACTIVE\n" if up else "1: DOWN\n")

    def virtual_function(self, pf: str, number: int, name: str, *, verbs: int) -> None:
        """Add a VF with an RDMA device; *pf* is the address of its physical function."""
        above = (self.root / "sys/bus/pci/devices" / pf).resolve()
        own = above.parent / f"{pf[:-1]}{number + 1}"
        root = next(one for one in above.parts if one.startswith("pci"))
        bridges = above.parts[above.parts.index(root) + 1 : -1]
        numa = int((above / "numa_node").read_text())
        self.rdma(name, own.name, root, numa=numa, verbs=verbs, above=bridges)
        (own / "physfn").symlink_to(above)
        (above / f"virtfn{number}").symlink_to(own)

    def numa(self, number: int, cpus: str) -> None:
        """Add a NUMA node."""
        node = self.root / f"sys/devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "meminfo").write_text(f"Node {number} MemTotal:       65536 kB\n")

    def nvidia(self, address: str, uuid: str, *, minor: int, model: str) -> None:
        """Add what NVIDIA's kernel module says of a card."""
        file = self.root / "proc/driver/nvidia/gpus" / address / "information"
        file.parent.mkdir(parents=True)
        file.write_text(f"Model: \t\t {model}\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")

    @staticmethod
    def _file(place: Path, text: str) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")

    @staticmethod
    def _link(place: Path, target: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
