"""What is known of a node's devices, as far as something tells it; the rest stays unset."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.api.devices import NumaNode
from lockstep.api.wire import Wire

UNKNOWN = -1


class MigDevice(Wire, frozen=True):
    """One MIG device of a card; ``memory`` is in MiB, ``profile`` as NVIDIA writes it."""

    index: int
    uuid: str
    profile: str
    memory: int
    gpu_instance: int
    compute_instance: int


class Card(Wire, frozen=True):
    """One GPU or other accelerator.

    The UUID is the identity; the index and the minor number hold until the next reset. ``memory``
    is in MiB. ``pci`` is the address as the kernel writes it (``0000:17:00.0``), ``root`` the
    root complex above it, ``bridges`` the ports between, from the root down. ``peers`` are the
    indices of the cards that NVLink reaches; ``fabric`` is ``CLUSTER.CLIQUE`` where several nodes
    share NVLink. ``trouble`` says why the card must not be used.
    """

    index: int
    uuid: str = ""
    vendor: str = "nvidia"
    resource: str = "nvidia.com/gpu"
    model: str = ""
    memory: int = 0
    minor: int = UNKNOWN
    serial: str = ""
    compute: str = ""
    driver: str = ""
    cuda: str = ""
    pci: str = ""
    root: str = ""
    bridges: list[str] = []
    numa: int = UNKNOWN
    link_speed: str = ""
    link_width: int = 0
    nodes: list[str] = []
    peers: list[int] = []
    nvlinks: int = 0
    nvswitch: bool = False
    p2p: Mapping[str, str] = {}
    fabric: str = ""
    mig: bool = False
    mig_devices: list[MigDevice] = []
    trouble: str = ""


class Port(Wire, frozen=True):
    """One network card; ``speed`` is in Gb/s, ``name`` what programs call it (``mlx5_0``).

    ``gid`` is the index of its RoCE v2 entry. A card that is ``aside`` is handed out under another
    name than ``lockstep.dev/nics``.
    """

    index: int
    name: str
    pci: str = ""
    root: str = ""
    bridges: list[str] = []
    numa: int = UNKNOWN
    speed: int = 0
    rdma: bool = True
    interfaces: list[str] = []
    virtual: bool = False
    active: bool = False
    link: str = ""
    gid: int = UNKNOWN
    aside: bool = False


class Inventory(Wire, frozen=True):
    """All devices of one node."""

    cards: list[Card] = []
    ports: list[Port] = []
    numa_nodes: list[NumaNode] = []
    remarks: list[str] = []
    """What could not be found out, and why."""
