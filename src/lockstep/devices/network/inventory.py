"""Finds the NICs of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from lockstep.devices import sysfs
from lockstep.devices.core.model import UNKNOWN
from lockstep.devices.network.core.model import Gid, Kind, Nic
from lockstep.devices.network.tree import Tree

NET = "sys/class/net"
HCAS = "sys/class/infiniband"
_NOTHING = re.compile(r"^[0:]*$")
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ALIEN = ("bridge", "tun_flags", "wireless")
"""Files of netdevs that are no NICs."""
PORT = "ports/1"
_NETWORK = 0x02
"""The PCI base class of network controllers."""


def nics(tree: Tree) -> list[Nic]:
    """Return the machine's NICs: RDMA devices, then other netdevs, then cards without a driver."""
    addresses = _addresses(tree)
    found = [_rdma(tree, name, addresses) for name in tree.names(HCAS)]
    taken = {nic.netdev for nic in found}
    for name in tree.names(NET):
        if name not in taken and _is_nic(tree, name):
            found.append(_ethernet(tree, name, addresses.get(name, [])))
    known = {nic.pci for nic in found}
    return [*found, *(one for one in _bare(tree) if one.pci not in known)]


def _bare(tree: Tree) -> Iterator[Nic]:
    """Yield the PCI functions that are network controllers; one without a driver has no netdev."""
    for one in sysfs.functions(tree.root):
        if one.class_ >> 8 == _NETWORK:
            place = f"sys/bus/pci/devices/{one.address}"
            kind: Kind = "vf" if one.virtual else "pf"
            driver = _driver(tree, place)
            yield Nic(kind=kind, state="down", **_hangs(tree, one.address), driver=driver)


def default_routes(tree: Tree) -> set[str]:
    """Return the netdevs over which the machine reaches what is nowhere else."""
    routes = (one for one in tree.json("ip-route") if isinstance(one, dict))
    return {str(one.get("dev", "")) for one in routes if one.get("dst") == "default"} - {""}


def _is_nic(tree: Tree, name: str) -> bool:
    place = f"{NET}/{name}"
    kind = tree.text(f"{place}/type")
    # Recordings of other tools leave the type out; what has a PCI function is a NIC all the same.
    if kind != "1" and (kind or not _pci(tree, f"{place}/device")):
        return False
    return not any(tree.path(f"{place}/{one}").exists() for one in _ALIEN)


def _ethernet(tree: Tree, name: str, addresses: list[str]) -> Nic:
    place = f"{NET}/{name}"
    speed = tree.text(f"{place}/speed")
    pci = _pci(tree, f"{place}/device")
    return Nic(
        netdev=name,
        kind=_kind(tree, name, pci),
        link="ethernet",
        state=tree.text(f"{place}/operstate"),
        rate=int(speed) / 1000 if re.fullmatch(r"\d{1,7}", speed) else 0.0,
        mtu=_number(tree.text(f"{place}/mtu")),
        mac=tree.text(f"{place}/address"),
        addresses=addresses,
        up=_is_up(tree, place),
        **_hangs(tree, pci),
        driver=_driver(tree, f"{place}/device"),
    )


def _rdma(tree: Tree, name: str, addresses: dict[str, list[str]]) -> Nic:
    place = f"{HCAS}/{name}"
    port = f"{place}/{PORT}"
    pci = _pci(tree, f"{place}/device")
    table = list(gids(tree, port))
    netdevs = [one.netdev for one in table if one.netdev] + tree.names(f"{place}/device/net")
    netdev = netdevs[0] if netdevs else ""
    layer = tree.text(f"{port}/link_layer").lower()
    link: Literal["", "ethernet", "infiniband"] = (
        "infiniband" if layer.startswith("infini") else "ethernet" if layer else ""
    )
    state = tree.text(f"{port}/state")
    return Nic(
        netdev=netdev,
        hca=name,
        kind=_kind(tree, netdev, pci),
        link=link,
        state=state.partition(": ")[2] or state,
        physical=tree.text(f"{port}/phys_state").partition(": ")[2],
        rate=_rate(tree.text(f"{port}/rate")),
        mtu=_number(tree.text(f"{NET}/{netdev}/mtu")) if netdev else 0,
        mac=tree.text(f"{NET}/{netdev}/address") if netdev else "",
        addresses=addresses.get(netdev, []),
        gids=table,
        up="ACTIVE" in state,
        **_hangs(tree, pci),
        firmware=tree.text(f"{place}/fw_ver"),
        driver=_driver(tree, f"{place}/device"),
    )


def gids(tree: Tree, port: str) -> Iterator[Gid]:
    """Yield the entries of a port's table that are in use; there may be holes."""
    for index in tree.names(f"{port}/gids"):
        gid = tree.text(f"{port}/gids/{index}")
        if index.isdecimal() and gid and not _NOTHING.match(gid):
            yield Gid(
                index=int(index),
                gid=gid,
                type=tree.text(f"{port}/gid_attrs/types/{index}"),
                netdev=tree.text(f"{port}/gid_attrs/ndevs/{index}"),
            )


def _kind(tree: Tree, netdev: str, pci: str) -> Kind:
    if netdev and tree.path(f"{NET}/{netdev}/bonding").exists():
        return "bond"
    if pci and tree.path(f"sys/bus/pci/devices/{pci}/physfn").exists():
        return "vf"
    if pci:
        return "pf"
    return "sf" if netdev and tree.path(f"{NET}/{netdev}/device/sfnum").exists() else "virtual"


def _pci(tree: Tree, device: str) -> str:
    place = tree.path(device)
    if not place.exists():
        return ""
    name = place.resolve().name
    return name if _PCI.fullmatch(name) else ""


def _hangs(tree: Tree, pci: str) -> dict[str, Any]:
    found = sysfs.function(pci, tree.root)
    if found is None:
        return {"pci": pci, "numa": UNKNOWN}
    place = f"sys/bus/pci/devices/{pci}"
    return {
        "pci": pci,
        "root": found.root,
        "bridges": list(found.bridges),
        "numa": found.numa,
        "speed": tree.text(f"{place}/current_link_speed"),
        "max_speed": found.speed,
        "width": _number(tree.text(f"{place}/current_link_width")),
        "max_width": found.width,
    }


def _driver(tree: Tree, device: str) -> str:
    place = tree.path(f"{device}/driver")
    return place.resolve().name if place.exists() else ""


def _is_up(tree: Tree, place: str) -> bool:
    # Virtual devices say "unknown" while they carry traffic.
    return tree.text(f"{place}/operstate") in ("up", "unknown") and (
        tree.text(f"{place}/carrier") != "0"
    )


def _addresses(tree: Tree) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in tree.json("ip-addr"):
        if not isinstance(one, dict):
            continue
        listed = one.get("addr_info")
        for info in listed if isinstance(listed, list) else ():
            if isinstance(info, dict) and isinstance(info.get("local"), str):
                address = f"{info['local']}/{info.get('prefixlen', 32)}"
                found.setdefault(str(one.get("ifname", "")), []).append(address)
    return found


def _number(text: str) -> int:
    found = re.match(r"\d{1,9}", text)
    return int(found[0]) if found else 0


def _rate(text: str) -> float:
    found = re.match(r"\d{1,6}(\.\d+)?", text)
    return float(found[0]) if found else 0.0
