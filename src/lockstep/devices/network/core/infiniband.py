"""What ``ibnetdiscover`` prints of an InfiniBand fabric.

A device is its GUID. Its description only says which host it belongs to, and often does not: fresh
adapters state their model, some hosts are all called ``localhost``. Such an adapter stands for a
host of its own, known by its GUID, so that it joins no two leaves that no cable joins.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from lockstep.devices.network.core.fabric import Cable, End, Fabric, Fault
from lockstep.devices.network.core.sources import Unreadable, one_sided

_HEAD: Final = re.compile(r'^(Switch|Ca|Rt)\s+\d+\s+"([^"]{1,64})"\s*#\s*"([^"]*)"')
_LINE: Final = re.compile(
    r'^\[(\d{1,5})\](?:\([0-9a-f]+\))?\s+"([^"]{1,64})"\[(\d{1,5})\](?:\([0-9a-f]+\))?'
    r'\s*#[^"]*"([^"]*)"(?:\s+lid\s+\d+)?\s*(\S*)'
)
_IMAGE: Final = re.compile(r"^sysimgguid=(?:0x)?([0-9a-f]{1,16})$")
_CARD: Final = re.compile(r"(?i)^(?:HCA-?\d+|[a-z]+\d*_\d+|[a-z]+\d+(?:p\d+)?)$")
"""How a description names an adapter of its host: ``mlx5_0``, ``HCA-1``, ``hfi1_0``, ``mthca0``."""
_NO_HOST: Final = re.compile(r"(?i)^(?:\(none\)|localhost|MT\d+|mellanox|connectx\S*|nvidia)$")
_AGGREGATION: Final = "Aggregation Node"
"""What the SHARP unit inside a switch calls itself. It is no host's."""
_SHOWN: Final = 3


@dataclass(slots=True)
class _Device:
    kind: str
    words: str
    image: str = ""
    """The GUID of the card or switch that it is a part of."""


@dataclass(slots=True)
class _Listing:
    """The text as it stands: devices by id, those with a section of their own, and the cables."""

    devices: dict[str, _Device] = field(default_factory=dict)
    sections: set[str] = field(default_factory=set)
    lines: list[tuple[str, str, str, str, str]] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> _Listing:
        """Take in each section's head and each of its ports that a cable is in."""
        found, current, image = cls(), "", ""
        for line in text.splitlines():
            if (part := _IMAGE.match(line.strip())) is not None:
                image = part[1]
            elif (head := _HEAD.match(line)) is not None:
                current = head[2]
                found.devices[current] = _Device(head[1], head[3].strip(), image)
                found.sections.add(current)
                image = ""
            elif current and (port := _LINE.match(line)) is not None:
                found.lines.append((current, port[1], port[2], port[3], port[5]))
                kind = "Switch" if port[2][0] == "S" else "Ca"
                found.devices.setdefault(port[2], _Device(kind, port[4].strip()))
        return found

    def without_aggregation(self) -> None:
        """Leave out what sits inside a switch: it has the switch's image, and no cable."""
        inside = {one.image for one in self.devices.values() if one.kind == "Switch" and one.image}
        gone = {
            guid
            for guid, one in self.devices.items()
            if one.kind == "Ca" and (one.image in inside or _AGGREGATION in one.words)
        }
        self.devices = {guid: one for guid, one in self.devices.items() if guid not in gone}
        self.lines = [one for one in self.lines if gone.isdisjoint((one[0], one[2]))]


def ibnetdiscover(text: str) -> Fabric:
    """Return the fabric that ``ibnetdiscover`` printed.

    A host is the first word of an adapter's description, the rest is its adapter (``node1
    mlx5_0``). Switches whose descriptions are not unique are called by their ids.

    Raises:
        Unreadable: when no switch and no adapter is in it, no cable, or not each switch.
    """
    listing = _Listing.read(text)
    if not listing.devices:
        raise Unreadable(
            'no line like \'Switch 36 "S-..." # "leaf1" ...\'; give it what ibnetdiscover prints'
        )
    listing.without_aggregation()
    cut = sorted(listing.devices.keys() - listing.sections)
    lost = [guid for guid in cut if listing.devices[guid].kind != "Ca"]
    if lost:
        raise Unreadable(
            "the listing is cut: its cables lead to switches without a section: "
            f"{_some(lost)}; run ibnetdiscover again and give it the whole output"
        )
    if not listing.lines:
        raise Unreadable(
            "no cable is in the listing: the port of the node that ran ibnetdiscover has no link; "
            "run it on a node whose port is Active"
        )
    fabric = _named(listing)
    if cut:
        told = "named by switches, and without sections of their own; run ibnetdiscover again"
        fabric.faults.append(Fault(kind="cut-listing", place=_some(cut), evidence=told))
    return fabric


def _named(listing: _Listing) -> Fabric:
    """Return the fabric with a name for each device."""
    fabric = Fabric()
    ends = dict(_switches(listing.devices))
    fabric.switches = {name for name, _ in ends.values()}
    adapters = _adapters(listing.devices, fabric)
    ends |= adapters
    both: Counter[tuple[End, End]] = Counter()
    for guid, port, far, far_port, rate in listing.lines:
        low, high = sorted((_end(*ends[guid], port), _end(*ends[far], far_port)))
        both[low, high] += 1 if {guid, far} <= listing.sections else 2
        fabric.cables.append(Cable(low, high, rate))
    fabric.faults += one_sided(both)
    return fabric


def _switches(devices: Mapping[str, _Device]) -> Iterator[tuple[str, tuple[str, str]]]:
    told = Counter(one.words for one in devices.values() if one.kind != "Ca")
    for guid, one in devices.items():
        if one.kind != "Ca":
            yield guid, (one.words if one.words and told[one.words] == 1 else guid, "")


def _adapters(devices: Mapping[str, _Device], fabric: Fabric) -> dict[str, tuple[str, str]]:
    """Return each adapter's host and card; note in the fabric which adapters state no host."""
    stated: dict[str, tuple[str, str]] = {}
    owners: dict[tuple[str, str], list[str]] = defaultdict(list)
    adapters = {guid: one for guid, one in devices.items() if one.kind == "Ca"}
    for guid, one in adapters.items():
        host, card = stated[guid] = _stated(one.words)
        owners[host, card].append(guid)
    # Two cards of one name are on two machines of one name, so the name tells neither.
    shared = {host for (host, card), those in owners.items() if host and len(those) > 1 and card}
    hosts = {
        one.image: stated[guid][0]
        for guid, one in adapters.items()
        if one.image and stated[guid][0] and stated[guid][0] not in shared
    }
    found = {}
    for guid, one in adapters.items():
        host, card = stated[guid]
        if not host or host in shared:
            host = hosts.get(one.image) or guid
            fabric.unnamed.add(host)
        found[guid] = (host, card)
        fabric.hosts.add(host)
    fabric.unnamed -= set(hosts.values())
    if fabric.unnamed:
        told = "their descriptions state no host; each counts as a host of its own, by its GUID"
        place = _some(sorted(fabric.unnamed))
        fabric.faults.append(Fault(kind="unnamed-adapter", place=place, evidence=told))
    return found


def _stated(words: str) -> tuple[str, str]:
    """Return the host and the card of a description, empty where it states none."""
    parts = words.split()
    if not parts or _NO_HOST.match(parts[0]):
        return "", ""
    if len(parts) == 1:
        return parts[0], ""
    return (parts[0], " ".join(parts[1:])) if _CARD.match(parts[1]) else ("", "")


def _end(device: str, card: str, port: str) -> End:
    return End(device, f"{card}/{port}" if card and port != "1" else card or port)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
