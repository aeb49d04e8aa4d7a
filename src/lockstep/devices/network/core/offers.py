"""Which of a node's NICs are handed out under which names, and what a container gets of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.api.devices import gid_variables
from lockstep.api.names import NICS
from lockstep.compat.nic_plugins import Candidate, Made, NicResource, made
from lockstep.devices.core.model import UNKNOWN, Card
from lockstep.devices.network.core.model import Nic, roce_gid

VENDOR: Final = "nic"
"""Stands in cards for network cards."""
CM: Final = "rdma_cm"
VHOST: Final = ("/dev/vhost-net", "/dev/net/tun")
OWN: Final = NicResource(NICS, (), rdma=True)
"""Whole RDMA devices that no other resource has."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A NIC with all that decides about it.

    *files* are its device files by kind (``uverbs``, ``umad``, ``issm``); *below* says why the
    physical function of a VF carries nothing.
    """

    nic: Nic
    candidate: Candidate
    files: Mapping[str, str]
    below: str = ""

    @property
    def identity(self) -> str:
        """Return what it is called among the devices of a resource."""
        return self.nic.pci or self.nic.name


@dataclass(frozen=True, slots=True)
class Offers:
    """The devices of all resources as cards; which NICs have which names; and what is wrong."""

    cards: list[Card]
    resources: Mapping[str, NicResource]
    seen: Mapping[str, Seen]
    """By identity."""
    aside: frozenset[str]
    """Names of the NICs that plugins' resources have: they are not ``lockstep.dev/nics``."""
    problems: list[str]


def offers(seen: Sequence[Seen], resources: Sequence[NicResource] = ()) -> Offers:
    """Return what is handed out: the stated resources, and the other RDMA devices as our own."""
    found: Made = made(resources, [one.candidate for one in seen])
    by_name = {one.nic.name: one for one in seen}
    aside = {name for those in found.resources.values() for name in those}
    cards: list[Card] = []
    for resource in resources:
        held = [by_name[name] for name in found.resources.get(resource.name, ())]
        if resource.shared:
            cards += _handles(resource, held)
        else:
            cards += [_card(n, one, resource) for n, one in enumerate(held)]
    rdma = [one for one in seen if one.nic.hca]
    cards += [_card(n, o, OWN) for n, o in enumerate(rdma) if o.nic.name not in aside]
    known = {resource.name: resource for resource in (*resources, OWN)}
    identities = {one.identity: one for one in seen}
    return Offers(cards, known, identities, frozenset(aside), list(found.problems))


def _card(index: int, one: Seen, resource: NicResource) -> Card:
    nic = one.nic
    return Card(
        index=index,
        uuid=one.identity,
        vendor=VENDOR,
        resource=resource.name,
        model=nic.name,
        pci=nic.pci,
        root=nic.root,
        bridges=nic.bridges,
        numa=nic.numa if resource.topology else UNKNOWN,
        nodes=_files([one], resource),
        trouble=trouble(one),
    )


def _handles(resource: NicResource, held: Sequence[Seen]) -> list[Card]:
    """Return the handles of a shared resource: each is all of its NICs whose link is well."""
    if not held:
        return []
    usable = [one for one in held if not trouble(one)]
    why = "" if usable else "; ".join(f"{one.nic.name}: {trouble(one)}" for one in held)
    files = _files(usable, resource)
    return [
        Card(index=n, uuid=str(n), vendor=VENDOR, resource=resource.name, nodes=files, trouble=why)
        for n in range(resource.times)
    ]


def _files(held: Sequence[Seen], resource: NicResource) -> list[str]:
    found = [file for one in held for file in one.files.values()] if resource.rdma else []
    common = [f"/dev/infiniband/{CM}"] if found else []
    return [*dict.fromkeys(found), *common, *(VHOST if resource.vhost else ())]


def trouble(one: Seen) -> str:
    """Return why a NIC must not be used; empty where its link is well."""
    nic = one.nic
    if not nic.up:
        return f"the port is {nic.physical or nic.state or 'down'}"
    return one.below


def places(cards: Iterable[Card]) -> dict[str, list[str]]:
    """Return where devices hang, the widest first: NUMA node, root complex, bridges."""
    return {card.uuid: place(card) for card in cards}


def place(card: Card) -> list[str]:
    """Return where a device hangs, the widest first."""
    return [str(card.numa), card.root, *card.bridges]


def variables(given: Offers, cards: Sequence[Card]) -> dict[str, str]:
    """Return the variables of a container that gets some devices of one resource.

    ``PCIDEVICE_...`` and its ``_INFO`` are the SR-IOV plugin's; NCCL's name the RDMA devices.
    """
    resource = given.resources[cards[0].resource]
    if resource.shared:
        return {}
    held = [given.seen[card.uuid] for card in cards]
    info = {one.identity: _info(one, resource) for one in held}
    found = {
        resource.variable: ",".join(one.identity for one in held),
        f"{resource.variable}_INFO": json.dumps(info),
    }
    hcas = [one.nic for one in held if one.nic.hca]
    if resource.rdma and hcas:
        names = ",".join(nic.hca for nic in hcas)
        found |= {"LOCKSTEP_HCAS": names, "NCCL_IB_HCA": f"={names}"}
        found |= gid_variables(
            {nic.hca: roce_gid(nic.gids) for nic in hcas if nic.link == "ethernet"}
        )
    return found


def _info(one: Seen, resource: NicResource) -> dict[str, dict[str, str]]:
    told = {"generic": {"deviceID": one.identity}}
    if resource.rdma and one.files:
        told["rdma"] = {CM: f"/dev/infiniband/{CM}", **one.files}
    if resource.vhost:
        told["vhost"] = {"net-mount": VHOST[0], "tun-mount": VHOST[1]}
    return told
