"""A node's NICs as far as the kernel and its tools tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from lockstep.api.wire import Wire
from lockstep.devices.core.model import UNKNOWN

_FOUR = "0000:0000:0000:0000:0000:ffff:"
Kind = Literal["pf", "vf", "sf", "bond", "virtual"]


class Gid(Wire, frozen=True):
    """One entry of a port's GID table; ``type`` is as the kernel writes it (``RoCE v2``)."""

    index: int
    gid: str
    type: str = ""
    netdev: str = ""


class Nic(Wire, frozen=True):
    """One NIC: a netdev, an RDMA device (``hca``), or both.

    ``rate`` is in Gb/s, ``mtu`` in bytes. ``addresses`` are as ``10.1.0.4/16``. ``link`` says what
    the port speaks. ``pci`` is the address as the kernel writes it, ``root`` the root complex above
    it; ``speed`` and ``width`` are those of its PCIe link now, ``max_*`` what the card could.
    """

    netdev: str = ""
    hca: str = ""
    kind: Kind = "virtual"
    link: Literal["", "ethernet", "infiniband"] = ""
    state: str = ""
    physical: str = ""
    rate: float = 0.0
    mtu: int = 0
    mac: str = ""
    addresses: list[str] = []
    gids: list[Gid] = []
    rail: str = ""
    pci: str = ""
    root: str = ""
    bridges: list[str] = []
    numa: int = UNKNOWN
    speed: str = ""
    max_speed: str = ""
    width: int = 0
    max_width: int = 0
    firmware: str = ""
    driver: str = ""
    up: bool = False

    @property
    def name(self) -> str:
        """Return what programs call it: its RDMA device, else its netdev, else its PCI address."""
        return self.hca or self.netdev or self.pci


def roce_gid(table: Iterable[Gid]) -> int:
    """Return the index of the RoCE v2 entry with the NIC's own address; -1 where there is none.

    An IPv4 address comes before one of IPv6; a link-local one is none, as peers of other leaves do
    not reach it.
    """
    second = [one for one in table if one.type == "RoCE v2" and not one.gid.startswith("fe80:")]
    order = sorted((not one.gid.startswith(_FOUR), one.index) for one in second)
    return order[0][1] if order else UNKNOWN
