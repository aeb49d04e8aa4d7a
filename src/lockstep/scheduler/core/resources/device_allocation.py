"""The devices of its node that a pod gets, and how its annotations say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lockstep.api.names import (
    GPUS_ANNOTATION,
    HCAS_ANNOTATION,
    NICS_ANNOTATION,
    NUMA_ANNOTATION,
)
from lockstep.scheduler.core.resources.device_inventory import NO_DEVICES, Layout
from lockstep.scheduler.core.util.bitmask import format_indices, parse_indices

NO_SOCKET = -1
"""The NUMA node of a pod that may have its CPUs from any."""


class Grant(NamedTuple):
    """The devices of its node that a pod gets."""

    gpus: int = 0
    """A mask, as for the NICs."""
    nics: int = 0
    socket: int = NO_SOCKET
    """The NUMA node that its CPUs and memory are counted on."""

    def __bool__(self) -> bool:
        """Return whether it is anything at all."""
        return self != NOTHING


NOTHING = Grant()


@dataclass(frozen=True, slots=True)
class Spot:
    """Where one pod goes: its node and the devices that it gets there."""

    node: str
    grant: Grant = NOTHING

    @property
    def gpus(self) -> int:
        """Return the mask of its GPUs."""
        return self.grant.gpus


def granted(annotations: Mapping[str, str]) -> Grant:
    """Return what a pod's annotations say that it holds; words that are no index are left out."""
    gpus = annotations.get(GPUS_ANNOTATION, "")
    nics = annotations.get(NICS_ANNOTATION, "")
    numa = annotations.get(NUMA_ANNOTATION, "")
    if not gpus and not nics and not numa:
        return NOTHING
    socket = int(numa) if numa.isascii() and numa.isdigit() else NO_SOCKET
    return Grant(parse_indices(gpus), parse_indices(nics), socket)


def annotations_of(grant: Grant, layout: Layout = NO_DEVICES) -> dict[str, str]:
    """Return what is written on a pod with its binding to a node with such a layout."""
    found = {}
    if grant.gpus:
        found[GPUS_ANNOTATION] = format_indices(grant.gpus)
    if grant.nics:
        found[NICS_ANNOTATION] = format_indices(grant.nics)
        names = [nic.name for nic in layout.nics if grant.nics >> nic.number & 1]
        if all(names) and names:
            found[HCAS_ANNOTATION] = ",".join(names)
    if grant.socket != NO_SOCKET:
        found[NUMA_ANNOTATION] = str(grant.socket)
    return found
