"""What a check looks at, and how it answers."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from lockstep.api.network import Check, State
from lockstep.api.topology import Rail
from lockstep.devices.network.core.model import Nic
from lockstep.devices.network.tree import Tree


@dataclass(frozen=True, slots=True)
class About:
    """One machine: its tree, the NICs that carry training traffic, and the rails as stated."""

    tree: Tree
    nics: list[Nic]
    rails: tuple[Rail, ...] = ()

    def place(self, nic: Nic) -> str:
        """Return how a NIC is named in answers."""
        return f"{self.tree.name}/{nic.name}"

    def roce(self) -> list[Nic]:
        """Return the NICs that speak RDMA over Ethernet."""
        return [nic for nic in self.nics if nic.hca and nic.link == "ethernet"]

    def shared_subnets(self) -> list[tuple[str, list[Nic]]]:
        """Return the subnets in which several NICs have an address."""
        held: dict[str, list[Nic]] = {}
        for nic in self.nics:
            for one in nic.addresses:
                inside = ipaddress.ip_interface(one)
                if not inside.ip.is_link_local and inside.version == 4:
                    held.setdefault(str(inside.network), []).append(nic)
        return [(net, those) for net, those in sorted(held.items()) if len(those) > 1]


def answer(group: str, state: State, place: str, evidence: str, fix: str = "") -> Check:
    """Return a check's answer."""
    return Check(group=group, state=state, place=place, evidence=evidence, fix=fix)


def well(group: str, place: str) -> Check:
    """Return that nothing is wrong."""
    return Check(group=group, state="ok", place=place, evidence="as it should be")
