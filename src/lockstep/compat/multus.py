"""Multus: a NetworkAttachmentDefinition for each rail, and whether the user's own fit the rails."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lockstep.api.topology import Rail

Json = dict[str, Any]
API_VERSION: Final = "k8s.cni.cncf.io/v1"
KIND: Final = "NetworkAttachmentDefinition"
NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"
RESOURCE: Final = "k8s.v1.cni.cncf.io/resourceName"
TYPES: Final = ("macvlan", "ipvlan", "host-device", "sriov")


def definitions(
    rails: Sequence[Rail], namespace: str, type_: str = "macvlan", resource: str = ""
) -> list[Json]:
    """Return one definition for each rail, with its VLAN, subnet and MTU.

    Addresses are given with the pod (``static``), from Lockstep's plan. *resource* is that of the
    device plugin which hands the NICs out; SR-IOV needs it.

    Raises:
        ValueError: when a rail does not say enough, naming it.
    """
    if type_ not in TYPES:
        raise ValueError(f"type {type_!r} is none of {', '.join(TYPES)}")
    if type_ == "sriov" and not resource:
        raise ValueError("sriov needs the resource that hands its VFs out, as mellanox.com/vfs")
    return [_definition(rail, namespace, type_, resource) for rail in rails]


def _definition(rail: Rail, namespace: str, type_: str, resource: str) -> Json:
    plugin: Json = {"type": type_, "ipam": {"type": "static"}}
    if type_ in ("macvlan", "ipvlan", "host-device"):
        if len(rail.interfaces) != 1 or any(c in rail.interfaces[0] for c in "*?["):
            raise ValueError(
                f"rail {rail.name}: interfaces {rail.interfaces} must name one NIC for {type_}"
            )
        key = "device" if type_ == "host-device" else "master"
        above = f"{rail.interfaces[0]}.{rail.vlan}" if rail.vlan else rail.interfaces[0]
        plugin[key] = above
    if type_ == "macvlan":
        plugin["mode"] = "bridge"
    if type_ == "sriov" and rail.vlan:
        plugin["vlan"] = rail.vlan
    if rail.mtu and type_ in ("macvlan", "ipvlan"):
        plugin["mtu"] = rail.mtu
    config = {"cniVersion": "1.0.0", "name": rail.name, "plugins": [plugin]}
    config["plugins"].append(  # type: ignore[attr-defined]
        {
            "type": "tuning",
            "sysctl": {
                "net.ipv4.conf.IFNAME.arp_ignore": "1",
                "net.ipv4.conf.IFNAME.arp_announce": "2",
            },
        }
    )
    metadata: Json = {"name": rail.name, "namespace": namespace}
    if resource:
        metadata["annotations"] = {RESOURCE: resource}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {"config": json.dumps(config)},
    }


def selection(rails: Iterable[str], addresses: Mapping[str, str], namespace: str) -> str:
    """Return a pod's annotation for these rails, with the address of each that has one."""
    chosen = [
        {"name": rail, "namespace": namespace, "interface": f"net{number}"}
        | ({"ips": [addresses[rail]]} if rail in addresses else {})
        for number, rail in enumerate(rails, 1)
    ]
    return json.dumps(chosen)


def attached(text: str) -> list[str]:
    """Return the names of definitions that a pod's annotation asks for, in either of its forms.

    Raises:
        ValueError: when it is neither.
    """
    if not text.strip().startswith("["):
        return [
            part.strip().rpartition("/")[2].partition("@")[0] for part in text.split(",") if part
        ]
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{NETWORKS}: no JSON: {error}") from None
    names = [one.get("name") if isinstance(one, dict) else None for one in listed]
    if not all(isinstance(one, str) for one in names):
        raise ValueError(f"{NETWORKS}: an entry has no name: {text[:100]}")
    return [str(one) for one in names]


def rail_of(definition: Json, rails: Sequence[Rail]) -> tuple[str, str]:
    """Return the rail that a definition attaches to, and what is wrong: one of both is empty."""
    name = str(definition.get("metadata", {}).get("name", ""))
    try:
        config = json.loads(definition["spec"]["config"])
        plugins = config.get("plugins", [config])
        plugin = plugins[0]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return "", f"{KIND} {name}: spec.config cannot be read: {error}"
    above = str(plugin.get("master") or plugin.get("device") or "").partition(".")[0]
    subnets = _subnets(plugin.get("ipam"))
    for rail in rails:
        inside = rail.subnet and any(
            net.version == 4 and net.subnet_of(ipaddress.IPv4Network(rail.subnet))
            for net in subnets
            if isinstance(net, ipaddress.IPv4Network) and ":" not in rail.subnet
        )
        if rail.name == name or (above and above in rail.interfaces) or inside:
            vlan = plugin.get("vlan")
            if rail.vlan and isinstance(vlan, int) and vlan != rail.vlan:
                return "", f"{KIND} {name}: vlan {vlan}; the rail {rail.name} has {rail.vlan}"
            return rail.name, ""
    said = above or ", ".join(map(str, subnets)) or "nothing"
    names = ", ".join(rail.name for rail in rails) or "none"
    return "", f"{KIND} {name}: {said} is on no rail; rails are {names}"


def _subnets(ipam: Any) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    if isinstance(ipam, dict):
        stated = ipam.get("ranges")
        ranges = stated if isinstance(stated, list) else []
        texts = [ipam.get("subnet"), ipam.get("range")]
        texts += [
            one.get("subnet") for group in ranges for one in _list(group) if isinstance(one, dict)
        ]
        for text in texts:
            try:
                found.append(ipaddress.ip_network(str(text), strict=False))
            except ValueError:
                continue
    return found


def _list(tree: Any) -> list[Any]:
    return tree if isinstance(tree, list) else []
