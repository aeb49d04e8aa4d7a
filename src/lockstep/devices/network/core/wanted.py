"""What the kernel of a node shall hold for the addresses that are planned there."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep.api.network import Address

SETTINGS: Mapping[str, str] = {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"}


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A route in a table: over a netdev, through a gateway where one is named."""

    table: int
    network: str
    netdev: str
    gateway: str = ""


@dataclass(slots=True)
class Wanted:
    """Addresses by netdev, rules from addresses to tables, routes, settings and MTUs."""

    addresses: set[tuple[str, str]] = field(default_factory=set)
    rules: set[tuple[str, int]] = field(default_factory=set)
    routes: set[Route] = field(default_factory=set)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    mtus: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def wanted(planned: Sequence[Address], netdevs: Mapping[str, str]) -> Wanted:
    """Return what planned addresses take, with the node's netdev of each rail."""
    found = Wanted()
    for one in planned:
        netdev = netdevs.get(one.rail)
        if netdev is None:
            found.problems.append(f"no NIC is on rail {one.rail}, where {one.address} is planned")
            continue
        inside = ipaddress.ip_interface(one.address)
        found.addresses.add((netdev, one.address))
        found.rules.add((str(inside.ip), one.table))
        found.routes.add(Route(one.table, str(inside.network), netdev))
        if one.gateway:
            found.routes.add(Route(one.table, "default", netdev, one.gateway))
        for name, value in SETTINGS.items():
            found.settings[netdev, name] = value
        if one.mtu:
            found.mtus[netdev] = one.mtu
    return found
