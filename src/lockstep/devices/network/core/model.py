"""A node's NICs as far as the kernel and its tools tell of them."""

from __future__ import annotations

from typing import Literal

from lockstep.api.wire import Wire
from lockstep.devices.core.model import UNKNOWN

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
        """Return what programs call it: its RDMA device, else its netdev."""
        return self.hca or self.netdev
