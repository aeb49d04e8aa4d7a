"""What a NIC's switch tells by LLDP."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.devices.network.tree import Tree


def neighbour(tree: Tree, netdev: str) -> Json:
    """Return what lldpd knows of the neighbour of *netdev*; empty where it knows none."""
    if not netdev:
        return {}
    for answer in tree.json("lldp"):
        told = answer.get("lldp", {}) if isinstance(answer, dict) else {}
        listed = told.get("interface", []) if isinstance(told, dict) else []
        for one in listed if isinstance(listed, list) else [listed]:
            if not isinstance(one, dict):
                continue
            if isinstance(one.get(netdev), dict):
                return dict(one[netdev])
            if one.get("name") == netdev:
                return one
    return {}


def vlans(found: Json) -> set[int]:
    """Return the VLANs that a neighbour names; empty where it names none."""
    listed = found.get("vlan", [])
    numbers = (
        str(one.get("vlan-id", ""))
        for one in (listed if isinstance(listed, list) else [listed])
        if isinstance(one, dict)
    )
    return {int(text) for text in numbers if text.isdecimal()}


def pfc(found: Json) -> set[int] | None:
    """Return the priorities that the neighbour pauses (802.1Qaz, subtype 11); None if untold."""
    tlvs = found.get("unknown-tlvs", {})
    listed = tlvs.get("unknown-tlv", []) if isinstance(tlvs, dict) else []
    for one in listed if isinstance(listed, list) else [listed]:
        if not isinstance(one, dict):
            continue
        oui = str(one.get("oui", "")).replace(",", "").replace(":", "").lower()
        if oui == "0080c2" and str(one.get("subtype", "")) == "11":
            octets = str(one.get("value", "")).replace(":", ",").split(",")
            if len(octets) >= 2:
                enabled = int(octets[1], 16)
                return {n for n in range(8) if enabled >> n & 1}
    return None
