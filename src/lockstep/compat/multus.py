"""Multus: a NetworkAttachmentDefinition for each rail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from lockstep.api.topology import Rail
from lockstep.api.wire import Json

API_VERSION: Final = "k8s.cni.cncf.io/v1"
KIND: Final = "NetworkAttachmentDefinition"
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
