"""GIDs, VLANs, ARP and routes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from lockstep.api.network import Check, State
from lockstep.api.wire import Json
from lockstep.devices.network.checklist.about import About, answer
from lockstep.devices.network.checklist.neighbour import neighbour, vlans
from lockstep.devices.network.core.model import Nic


def gid(one: About) -> Iterator[Check]:
    """Yield RoCE NICs without a RoCE v2 entry for their address, and entries of other NICs."""
    for nic in one.roce():
        place = one.place(nic)
        own = {str(ipaddress.ip_interface(a).ip) for a in nic.addresses}
        second = [g for g in nic.gids if g.type.replace(" ", "").lower() == "rocev2"]
        if not nic.gids:
            yield answer("gid", "fail", place, "the GID table is empty", "give the NIC an address")
        elif not second:
            told = "no entry is RoCE v2: " + ", ".join(sorted({g.type or "?" for g in nic.gids}))
            fix = "set the default mode to RoCE v2 (cma_roce_mode -d HCA -m 2)"
            yield answer("gid", "fail", place, told, fix)
        elif own and not any(mapped(g.gid) in own for g in second):
            told = f"no RoCE v2 entry carries {', '.join(sorted(own))}"
            fix = "take the address off and set it again; see that it is the netdev's own"
            yield answer("gid", "fail", place, told, fix)
        elif not own:
            told = f"{nic.netdev or 'its netdev'} has no address"
            yield answer("gid", "warn", place, told, "plan an address on its rail")
        foreign = {g.netdev for g in nic.gids if g.netdev and g.netdev != nic.netdev}
        known = {other.netdev for other in one.nics if other is not nic}
        for netdev in sorted(foreign & known):
            told = f"entries name {netdev}, another NIC's netdev"
            yield answer("gid", "fail", place, told, "look at the bond, or reload the driver")


def mapped(text: str) -> str:
    """Return a GID as an address: of IPv4 as such."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or address)


def vlan(one: About) -> Iterator[Check]:
    """Yield NICs in another VLAN than their rail, or than their switch's port carries."""
    tags = _tags(one)
    for nic in one.nics:
        place = one.place(nic)
        own = tags.get(nic.netdev, set())
        rail = next((r for r in one.rails if r.name == nic.rail), None)
        if rail is not None and rail.vlan and rail.vlan not in own:
            told = f"no VLAN {rail.vlan} on {nic.netdev}; the rail {rail.name} has it"
            name = f"{nic.netdev}.{rail.vlan}"
            fix = f"ip link add link {nic.netdev} name {name} type vlan id {rail.vlan}"
            yield answer("vlan", "fail", place, told, fix)
        carried = vlans(neighbour(one.tree, nic.netdev)) if nic.netdev else set()
        for tag in sorted(own - carried if carried else ()):
            told = f"VLAN {tag} on {nic.netdev}; the switch's port carries "
            told += ", ".join(map(str, sorted(carried)))
            yield answer("vlan", "fail", place, told, f"add VLAN {tag} to the switch's port")
    yield from _functions(one)


def _tags(one: About) -> dict[str, set[int]]:
    """Return the VLANs that are set on each netdev, by interfaces above it or on the VF itself."""
    found: dict[str, set[int]] = {}
    for link in one.tree.json("ip-addr"):
        if not isinstance(link, dict):
            continue
        info = link.get("linkinfo")
        if isinstance(info, dict) and info.get("info_kind") == "vlan":
            number = (info.get("info_data") or {}).get("id")
            lower = link.get("link")
            if isinstance(number, int) and isinstance(lower, str):
                found.setdefault(lower, set()).add(number)
                found.setdefault(str(link.get("ifname")), set())
    return found


def _functions(one: About) -> Iterator[Check]:
    """Yield PFs whose VFs are in different VLANs."""
    for link in one.tree.json("ip-addr"):
        listed = link.get("vfinfo_list") if isinstance(link, dict) else None
        if not isinstance(listed, list) or not listed:
            continue
        tags = {_vf_vlan(vf) for vf in listed if isinstance(vf, dict)}
        if len(tags) > 1:
            told = "its VFs are in different VLANs: " + ", ".join(str(t) for t in sorted(tags))
            name = str(link.get("ifname", ""))
            fix = f"ip link set {name} vf N vlan VLAN"
            yield answer("vlan", "fail", f"{one.tree.name}/{name}", told, fix)


def _vf_vlan(vf: Json) -> int:
    listed = vf.get("vlan_list")
    first = listed[0] if isinstance(listed, list) and listed else vf
    number = first.get("vlan", 0) if isinstance(first, dict) else 0
    return number if isinstance(number, int) else 0


def arp(one: About) -> Iterator[Check]:
    """Yield settings with which the wrong NIC answers, and routes that leave by another NIC."""
    shared = one.shared_subnets()
    for net, those in shared:
        for nic in those:
            yield from _settings(one, nic, f"and several NICs are in {net}", "fail")
            yield from _source_rule(one, nic, net)
    apart = [nic for nic in one.nics if nic.addresses]
    if not shared and len(apart) > 1:
        # Rails that are apart suffer from these only where a switch joins them.
        for nic in apart:
            yield from _settings(one, nic, "and the node has several NICs", "warn")
    for nic in one.nics:
        yield from _unanswered(one, nic)
    yield from _doubled(one)


def _settings(one: About, nic: Nic, why: str, state: State) -> Iterator[Check]:
    place = one.place(nic)
    wanted = (("arp_ignore", {1, 2}), ("arp_announce", {2}), ("rp_filter", {0, 2}))
    for name, good in wanted:
        texts = [
            one.tree.text(f"proc/sys/net/ipv4/conf/{which}/{name}") for which in ("all", nic.netdev)
        ]
        if not all(text.isdecimal() for text in texts):
            continue
        value = max(map(int, texts))
        if value not in good:
            told = f"{name} is {value}, {why}"
            fix = f"sysctl -w net.ipv4.conf.{nic.netdev}.{name}={max(good)}"
            yield answer("arp", state, place, told, fix)


def _source_rule(one: About, nic: Nic, net: str) -> Iterator[Check]:
    own = {str(ipaddress.ip_interface(a).ip) for a in nic.addresses}
    rules = [r for r in one.tree.json("ip-rule") if isinstance(r, dict)]
    tables = {str(r.get("table")) for r in rules if str(r.get("src", "")).split("/")[0] in own}
    if "ip-rule" in one.tree.missing:
        return
    place = one.place(nic)
    if not tables:
        told = f"no source rule for {', '.join(sorted(own))}, and several NICs are in {net}"
        fix = f"ip rule add from ADDRESS table T; ip route add {net} dev {nic.netdev} table T"
        yield answer("arp", "fail", place, told, fix)
        return
    routes = [r for r in one.tree.json("ip-route") if isinstance(r, dict)]
    inside = [r for r in routes if str(r.get("table", "main")) in tables]
    if not any(r.get("dev") == nic.netdev for r in inside):
        told = f"the table {', '.join(sorted(tables))} has no route over {nic.netdev}"
        fix = f"ip route add {net} dev {nic.netdev} table {min(tables)}"
        yield answer("arp", "fail", place, told, fix)


def _unanswered(one: About, nic: Nic) -> Iterator[Check]:
    for entry in one.tree.json("ip-neigh"):
        if not isinstance(entry, dict) or not nic.netdev or entry.get("dev") != nic.netdev:
            continue
        state = entry.get("state")
        if "FAILED" in (state if isinstance(state, list) else [state]):
            told = f"{entry.get('dst')} does not answer ARP on {nic.netdev}"
            fix = "look at VLAN, switch port and the peer's arp_ignore"
            yield answer("arp", "fail", one.place(nic), told, fix)


def _doubled(one: About) -> Iterator[Check]:
    """Yield addresses that two NICs of the machine have."""
    held: dict[str, Nic] = {}
    for nic in one.nics:
        for address in nic.addresses:
            plain = re.sub(r"/.*", "", address)
            if ipaddress.ip_address(plain).is_link_local:
                continue
            before = held.setdefault(plain, nic)
            if before is not nic:
                told = f"{before.name} has {plain} too"
                yield answer("arp", "fail", one.place(nic), told, "plan the addresses anew")
