"""How close together the devices of each pod must or should be."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from lockstep.api.wire import Wire

Relation = Literal["nvlink", "pcie", "numa"]


class AlignmentWish(Wire, frozen=True):
    """What must or should be close together inside a node, for each pod on its own."""

    required: Annotated[list[Relation], Meta(max_length=3)] = []
    """What must be: nvlink (its GPUs in one NVLink domain), pcie (GPUs and NICs under the same PCIe
    roots), numa (CPUs, memory, GPUs and NICs of one NUMA node)."""
    preferred: Annotated[list[Relation], Meta(max_length=3)] = []
    """What should be where that is possible."""
