"""What a node states of its devices, from its inventory: annotations, labels, amounts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from lockstep.api import names
from lockstep.api.devices import Device
from lockstep.devices.core.model import UNKNOWN, Card, Inventory

_FAMILIES: Mapping[str, str] = {
    "5": "maxwell",
    "6": "pascal",
    "7.0": "volta",
    "7.2": "volta",
    "7.5": "turing",
    "8.0": "ampere",
    "8.6": "ampere",
    "8.7": "ampere",
    "8.9": "ada-lovelace",
    "9": "hopper",
    "10": "blackwell",
    "12": "blackwell",
}
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9._-]+")


def devices(found: Inventory) -> list[Device]:
    """Return the list for the annotation ``lockstep.dev/devices``: GPUs, then NICs."""
    roots = {*(card.root for card in found.cards), *(port.root for port in found.ports)} - {""}
    numbers = {root: number for number, root in enumerate(sorted(roots))}
    domains = nvlink_domains(found.cards)
    gpus = [
        Device(
            index=card.index,
            kind="gpu",
            model=card.model,
            memory=card.memory,
            nvlink=domains[card.index],
            numa=card.numa,
            pcie=numbers.get(card.root, UNKNOWN),
            uuid=card.uuid,
            healthy=not card.trouble,
        )
        for card in gpu_cards(found)
    ]
    nics = [
        Device(
            index=port.index,
            kind="nic",
            name=port.name,
            link=port.link,
            gid=port.gid,
            rail=port.index,
            speed=port.speed,
            numa=port.numa,
            pcie=numbers.get(port.root, UNKNOWN),
            healthy=port.active,
        )
        for port in found.ports
        if not port.aside
    ]
    return [*gpus, *nics]


def told(found: Inventory) -> dict[str, str]:
    """Return the node's annotations about its devices."""
    return {
        names.DEVICES_ANNOTATION: msgspec.json.encode(devices(found)).decode(),
        names.NUMA_NODES_ANNOTATION: msgspec.json.encode(found.numa_nodes).decode(),
    }


def gpu_cards(found: Inventory) -> list[Card]:
    """Return the cards that are handed out as ``nvidia.com/gpu``: those not split by MIG."""
    return [one for one in found.cards if one.resource == "nvidia.com/gpu" and not one.mig]


def nvlink_domains(cards: Sequence[Card]) -> dict[int, int]:
    """Return the number of each card's NVLink domain: those that reach each other share one."""
    domains = {card.index: card.index for card in cards}
    for card in cards:
        for peer in card.peers:
            one, other = domains[card.index], domains.get(peer, domains[card.index])
            if one != other:
                low = min(one, other)
                domains = {k: low if v in (one, other) else v for k, v in domains.items()}
    return domains


def allocatable(found: Inventory) -> dict[str, int]:
    """Return how many usable devices there are by resource name."""
    amounts: dict[str, int] = {}
    for card in found.cards:
        if card.mig:
            for part in card.mig_devices:
                name = f"nvidia.com/mig-{part.profile}"
                amounts[name] = amounts.get(name, 0) + (not card.trouble)
        else:
            amounts[card.resource] = amounts.get(card.resource, 0) + (not card.trouble)
    return amounts


def labels(found: Inventory) -> dict[str, str]:
    """Return gpu-feature-discovery's labels for the NVIDIA cards; empty without any."""
    cards = [one for one in found.cards if one.vendor == "nvidia"]
    if not cards:
        return {}
    first = cards[0]
    given = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(len(cards)),
        "nvidia.com/gpu.product": label(first.model),
        "nvidia.com/gpu.memory": str(first.memory or ""),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true" if _mig_capable(first) else "false",
        "nvidia.com/mig.strategy": "mixed" if any(one.mig for one in cards) else "",
        "nvidia.com/gpu.clique": first.fabric,
        **_versions("nvidia.com/cuda.driver-version", first.driver),
        **_versions("nvidia.com/cuda.runtime-version", first.cuda),
    }
    if first.compute:
        major, _, minor = first.compute.partition(".")
        given |= {
            "nvidia.com/gpu.family": family(first.compute),
            "nvidia.com/gpu.compute.major": major,
            "nvidia.com/gpu.compute.minor": minor,
        }
    return {name: value for name, value in given.items() if value}


def family(compute: str) -> str:
    """Return the architecture of a compute capability: ``9.0`` is ``hopper``."""
    return _FAMILIES.get(compute) or _FAMILIES.get(compute.partition(".")[0], "")


def label(text: str) -> str:
    """Return *text* as a label's value."""
    return _NOT_IN_LABELS.sub("-", text).strip("-._")[:63].strip("-._")


def _mig_capable(card: Card) -> bool:
    return card.mig or card.compute in ("8.0", "9.0", "10.0", "10.3", "12.0")


def _versions(prefix: str, version: str) -> dict[str, str]:
    parts = version.split(".") if version else []
    named = dict(zip(("major", "minor", "revision"), parts, strict=False))
    found = {f"{prefix}.{name}": part for name, part in named.items()}
    return found | ({f"{prefix}.full": version} if version else {})
