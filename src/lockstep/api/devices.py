"""What a node states of its devices, in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from lockstep.api.wire import Wire


class Device(Wire, frozen=True):
    """One GPU or NIC of a node, as the node states it in ``lockstep.dev/devices``.

    ``memory`` is in MiB, ``speed`` in Gb/s. ``nvlink`` numbers the NVLink domain inside the node;
    devices with the same ``pcie`` share a PCIe root; ``numa`` is -1 where nothing tells it.
    ``name`` is what programs call it (``mlx5_0``), ``link`` what a NIC's port speaks
    (``ethernet``, ``infiniband``), ``gid`` the index of its RoCE v2 entry, -1 where there is none.
    ``healthy`` is false for a device that must not be used.
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
    gid: int = -1
    uuid: str = ""
    healthy: bool = True


GIDS: Final = "LOCKSTEP_GID_INDICES"
"""The variable with the GID index of each RoCE device of a container: ``mlx5_0:3,mlx5_1:5``."""
ONE_GID: Final = "NCCL_IB_GID_INDEX"
ROCE_VERSION: Final = "NCCL_IB_ROCE_VERSION_NUM"


def gid_variables(gids: Mapping[str, int]) -> dict[str, str]:
    """Return what tells a container which GIDs its RoCE devices have; -1 stands for none.

    NCCL takes one index for all its devices: it gets that where they agree, and otherwise is told
    to find RoCE v2 entries itself, which it does from 2.21 on.
    """
    known = {name: index for name, index in gids.items() if index >= 0}
    if not gids:
        return {}
    found = {GIDS: ",".join(f"{name}:{index}" for name, index in known.items())} if known else {}
    if len(known) == len(gids) and len(set(known.values())) == 1:
        return found | {ONE_GID: str(next(iter(known.values())))}
    return found | {ROCE_VERSION: "2"}


class NumaNode(Wire, frozen=True):
    """One NUMA node of a node, as the node states it in ``lockstep.dev/numa-nodes``.

    ``cpus`` and ``memory`` are what pods may have of it; memory that is not stated is not counted.
    """

    index: int
    cpus: str | int | float
    memory: str | int | float = 0
