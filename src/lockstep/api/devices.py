"""What a node states of its devices, in annotations."""

from __future__ import annotations

from typing import Literal

from lockstep.api.wire import Wire


class Device(Wire, frozen=True):
    """One GPU or NIC of a node, as the node states it in ``lockstep.dev/devices``.

    ``memory`` is in MiB, ``speed`` in Gb/s. ``nvlink`` numbers the NVLink domain inside the node;
    devices with the same ``pcie`` share a PCIe root; ``numa`` is -1 where nothing tells it.
    ``name`` is what programs call it (``mlx5_0``), ``link`` what a NIC's port speaks
    (``ethernet``, ``infiniband``). ``healthy`` is false for a device that must not
    be used.
    """

    index: int
    kind: Literal["gpu", "nic"] = "gpu"
    model: str = ""
    memory: int = 0
    nvlink: int = 0
    numa: int = 0
    pcie: int = 0
    rail: int = 0
    speed: int = 0
    name: str = ""
    link: str = ""
    uuid: str = ""
    healthy: bool = True


class NumaNode(Wire, frozen=True):
    """One NUMA node of a node, as the node states it in ``lockstep.dev/numa-nodes``.

    ``cpus`` and ``memory`` are what pods may have of it; memory that is not stated is not counted.
    """

    index: int
    cpus: str | int | float
    memory: str | int | float = 0
