"""Addresses for the ranks of a gang on every rail: whole for a gang, or refused.

Addresses rise, and one that was given back is used again only after all others of its rail were:
switches and peers remember who had it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.network import Address
from lockstep.api.topology import Rail
from lockstep.devices.network.core.rails import subnet

FIRST_TABLE: Final = 5100
"""The routing table of the first rail; each has its own."""


class Refused(ValueError):
    """No plan is possible; the message names rail, numbers and remedy."""


@dataclass
class Pool:
    """What is given of a rail: who holds which address, and which was given last."""

    rail: Rail
    table: int = FIRST_TABLE
    last: int = 0
    held: dict[int, str] = field(default_factory=dict)
    """Owner by address as a number."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The addresses of each member by name, in the order of rails; and the pools after it."""

    members: Mapping[str, list[Address]]
    last: Mapping[str, int]


def pools(rails: Sequence[Rail], *, pooled: bool = False) -> list[Pool]:
    """Return empty pools; with *pooled* those of the rails alone that state one.

    Raises:
        Refused: when rails have no subnet, or overlap.
        ValueError: when a subnet is none.
    """
    found = []
    nets: list[tuple[str, ipaddress.IPv4Network | ipaddress.IPv6Network]] = []
    for index, rail in enumerate(rails):
        if pooled and not rail.pool:
            continue
        net = subnet(rail)
        if net is None:
            raise Refused(f"rail {rail.name} states no subnet; give it one, such as 10.1.0.0/16")
        for name, other in nets:
            if net.version == other.version and net.overlaps(other):
                raise Refused(f"rails {name} ({other}) and {rail.name} ({net}) overlap")
        if rail.gateway and ipaddress.ip_address(rail.gateway) not in net:
            raise Refused(f"rail {rail.name}: gateway {rail.gateway} is outside {net}")
        _range(rail)
        nets.append((rail.name, net))
        found.append(Pool(rail, FIRST_TABLE + index))
    if not found:
        raise Refused("no rails; state them in the Topology, or with --rail NAME=SUBNET")
    return found


def planned(owners: Sequence[str], those: Sequence[Pool]) -> Plan:
    """Return addresses for all *owners* on all rails; those that hold one keep it.

    The pools are changed as the plan says.

    Raises:
        Refused: when a rail has too few addresses left; then nothing is changed.
    """
    chosen: list[dict[str, int]] = []
    for pool in those:
        kept = {owner: number for number, owner in pool.held.items()}
        wanting = [owner for owner in owners if owner not in kept]
        fresh = _free(pool, len(wanting))
        mine = {owner: kept[owner] for owner in owners if owner in kept}
        chosen.append(mine | dict(zip(wanting, fresh, strict=True)))
    members: dict[str, list[Address]] = {owner: [] for owner in owners}
    for pool, numbers in zip(those, chosen, strict=True):
        net = _net(pool.rail)
        shape = _Shape(pool.rail, pool.table, net.version == 4, net.prefixlen)
        for owner in owners:
            members[owner].append(shape.address(numbers[owner]))
        before = set(pool.held)
        pool.held |= {number: owner for owner, number in numbers.items()}
        given = [number for number in numbers.values() if number not in before]
        # A round through the range begins anew at its start; the last one given is the mark.
        pool.last = given[-1] if given else pool.last
    return Plan(members, {pool.rail.name: pool.last for pool in those})


@dataclass(frozen=True, slots=True)
class _Shape:
    """What all addresses of a rail have in common."""

    rail: Rail
    table: int
    four: bool
    prefix: int

    def address(self, number: int) -> Address:
        text = _four(number) if self.four else str(ipaddress.IPv6Address(number))
        rail = self.rail
        return Address(
            rail=rail.name,
            address=f"{text}/{self.prefix}",
            table=self.table,
            gateway=rail.gateway,
            mtu=rail.mtu,
        )


def _four(number: int) -> str:
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _net(rail: Rail) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    net = subnet(rail)
    assert net is not None  # noqa: S101 - pools() has looked
    return net


def _range(rail: Rail) -> tuple[int, int]:
    """Return the first and the last address that may be given: those of the pool, where stated.

    Raises:
        Refused: when the pool is no part of the subnet.
    """
    net = _net(rail)
    edge = 1 if net.num_addresses > 2 else 0
    low = int(net.network_address) + edge
    high = int(net.broadcast_address) - (edge if net.version == 4 else 0)
    if not rail.pool:
        return low, high
    try:
        part = ipaddress.ip_network(rail.pool)
    except ValueError as error:
        text = f"rail {rail.name}: pool {rail.pool!r}: {error}; write it as 10.1.128.0/17"
        raise Refused(text) from None
    first, last = int(part.network_address), int(part.broadcast_address)
    inside = int(net.network_address) <= first and last <= int(net.broadcast_address)
    if part.version != net.version or not inside:
        raise Refused(f"rail {rail.name}: pool {rail.pool} is no part of {net}")
    return max(low, first), min(high, last)


def _free(pool: Pool, count: int) -> list[int]:
    """Return the next *count* free addresses after the last one given, round the range."""
    low, high = _range(pool.rail)
    aside = {int(ipaddress.ip_address(pool.rail.gateway))} if pool.rail.gateway else set()
    span = high - low + 1
    used = sum(low <= number <= high for number in {*pool.held, *aside})
    if span - used < count:
        name, what = (pool.rail.pool, "pool") if pool.rail.pool else (_net(pool.rail), "subnet")
        raise Refused(
            f"rail {pool.rail.name}: {name} has {span} addresses, {used} are taken, and {count} "
            f"are needed; give it a wider {what}"
        )
    found: list[int] = []
    number = pool.last + 1 if low <= pool.last < high else low
    while len(found) < count:
        if number not in pool.held and number not in aside:
            found.append(number)
        number = number + 1 if number < high else low
    return found
