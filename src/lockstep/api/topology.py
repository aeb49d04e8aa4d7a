"""Topology: the tiers of the network, widest first."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lockstep.api.meta import ObjectMeta, OwnObject
from lockstep.api.names import GROUP, HOSTNAME_LABEL, LEAF_LABEL, SPINE_LABEL, VERSION
from lockstep.api.resource import Resource
from lockstep.api.wire import Wire


class Tier(Wire, frozen=True):
    """One tier: nodes with the same value of a label share a domain of it."""

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the tier."""
    label: Annotated[str, Meta(min_length=1, max_length=317)]
    """Node label that names the domain."""
    bandwidth: Annotated[float, Meta(ge=0.001)] | None = None
    """GB/s at which a GPU reaches others under the same domain; by default 450 in a node, 50 in the
    tier around it, and half as much in each wider one."""
    nvlink: bool = False
    """Whether the GPUs under one domain are linked by NVLink, across nodes: tensor groups then stay
    inside a domain instead of inside a node."""


class Rail(Wire, frozen=True):
    """One rail of the training network: the NIC of each node that hangs on the same plane.

    A NIC belongs to the rail whose ``interfaces`` name it, else to the one whose subnet holds one
    of its addresses.
    """

    name: Annotated[str, Meta(min_length=1, max_length=63)]
    """Name of the rail."""
    subnet: Annotated[str, Meta(max_length=64)] = ""
    """Its addresses, as 10.1.0.0/16."""
    pool: Annotated[str, Meta(max_length=64)] = ""
    """The part of it that gangs' pods get addresses of, as 10.1.128.0/17; nothing else may use it.
    None get any where it is empty."""
    gateway: Annotated[str, Meta(max_length=64)] = ""
    """Router to the other leaves."""
    vlan: Annotated[int, Meta(ge=0, le=4094)] = 0
    """VLAN; 0: none."""
    mtu: Annotated[int, Meta(ge=0, le=65535)] = 0
    """MTU in bytes; 0: as it is."""
    interfaces: Annotated[list[str], Meta(max_length=64)] = []
    """Names of its NICs, as ens1f0 or mlx5_*."""


class TopologySpec(Wire, frozen=True):
    """The tiers, from the widest to the narrowest."""

    tiers: Annotated[list[Tier], Meta(min_length=1, max_length=16)]
    """Tiers, widest first."""
    rails: Annotated[list[Rail], Meta(max_length=64)] = []
    """Rails of the training network."""


class Topology(OwnObject, frozen=True):
    """The network's tiers; the object called ``default`` is the one in use."""

    spec: TopologySpec
    kind: str = "Topology"


TOPOLOGIES = Resource(GROUP, VERSION, "topologies", "Topology", False, Topology)

DEFAULT_TOPOLOGY = Topology(
    metadata=ObjectMeta(name="default"),
    spec=TopologySpec(
        tiers=[
            Tier(name="spine", label=SPINE_LABEL),
            Tier(name="leaf", label=LEAF_LABEL),
            Tier(name="node", label=HOSTNAME_LABEL),
        ]
    ),
)
