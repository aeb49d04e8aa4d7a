"""Which NIC belongs to which rail."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from lockstep.api.topology import Rail
from lockstep.devices.network.core.model import Nic


def assigned(
    nics: Iterable[Nic], rails: Sequence[Rail] = (), default_route: Iterable[str] = ()
) -> list[Nic]:
    """Return the NICs, each with its rail; those that belong to none keep an empty one.

    *rails* come first. Without any, RDMA devices are numbered in their order; where there are none,
    each IPv4 subnet is a rail, but for those of the netdevs in *default_route*.

    Raises:
        ValueError: when a rail's subnet is none, naming rail, value and remedy.
    """
    found = list(nics)
    if rails:
        nets = [(rail, subnet(rail)) for rail in rails]
        return [replace(nic, rail=_given(nic, nets)) for nic in found]
    if any(nic.hca for nic in found):
        numbers = iter(range(len(found)))
        return [replace(nic, rail=f"rail{next(numbers)}" if nic.hca else "") for nic in found]
    aside = set(default_route)
    by_subnet = {
        ipaddress.ip_interface(one).network
        for nic in found
        if nic.netdev not in aside
        for one in nic.addresses
        if ":" not in one
    }
    names = [Rail(name=f"rail{n}", subnet=str(net)) for n, net in enumerate(sorted(by_subnet))]
    nets = [(rail, subnet(rail)) for rail in names]
    return [replace(nic, rail="" if nic.netdev in aside else _given(nic, nets)) for nic in found]


def subnet(rail: Rail) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return a rail's subnet; none where it states none.

    Raises:
        ValueError: when it is no subnet.
    """
    if not rail.subnet:
        return None
    try:
        return ipaddress.ip_network(rail.subnet)
    except ValueError as error:
        raise ValueError(
            f"rail {rail.name}: subnet {rail.subnet!r}: {error}; write it as 10.1.0.0/16"
        ) from None


def address_on(nic: Nic, rail: Rail | None) -> str:
    """Return the NIC's address on its rail, without the prefix; empty where it has none."""
    net = subnet(rail) if rail is not None else None
    plain = [one.partition("/")[0] for one in nic.addresses]
    inside = [one for one in plain if net is None or ipaddress.ip_address(one) in net]
    routable = [one for one in inside if not ipaddress.ip_address(one).is_link_local]
    fours = [one for one in routable if ":" not in one]
    return next(iter(fours or routable), "")


def _given(
    nic: Nic,
    rails: Sequence[tuple[Rail, ipaddress.IPv4Network | ipaddress.IPv6Network | None]],
) -> str:
    for rail, _ in rails:
        named = (nic.netdev, nic.hca)
        if any(one and fnmatchcase(one, rule) for rule in rail.interfaces for one in named):
            return rail.name
    for rail, net in rails:
        if net is not None and any(ipaddress.ip_interface(one).ip in net for one in nic.addresses):
            return rail.name
    return ""
