"""The tables of services and of what belongs to networks."""

from __future__ import annotations

from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    at,
    first,
    labels,
    marked_default,
    selector,
    wide,
)


def _cluster_ip(obj: Json) -> Any:
    spec = obj.get("spec") or {}
    return (spec.get("clusterIPs") or [spec.get("clusterIP") or NONE])[0]


def _external(obj: Json) -> str:
    spec = obj.get("spec") or {}
    type_, external = spec.get("type"), spec.get("externalIPs") or []
    if type_ in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if type_ == "LoadBalancer":
        return ",".join([*_balancers(obj), *external]) or "<pending>"
    return str(spec.get("externalName", "")) if type_ == "ExternalName" else UNKNOWN


def _balancers(obj: Json) -> list[str]:
    points = at(obj, "status.loadBalancer.ingress", [])
    return sorted({p.get("ip") or p.get("hostname") for p in points} - {None, ""})


def _ports(obj: Json) -> str:
    return ",".join(_port(p) for p in at(obj, "spec.ports", [])) or NONE


def _port(port: Json) -> str:
    protocol = port.get("protocol", "TCP")
    if port.get("nodePort"):
        return f"{port['port']}:{port['nodePort']}/{protocol}"
    return f"{port.get('port')}/{protocol}"


def _endpoints(obj: Json) -> str:
    listed = []
    for subset in obj.get("subsets") or ():
        addresses = [a.get("ip", "") for a in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            listed.extend(addresses)
        for port in ports or ():
            listed.extend(_joined(address, port.get("port")) for address in addresses)
    return first(listed, 3) if obj.get("subsets") else NONE


def _joined(address: str, port: int | None) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice_ports(obj: Json) -> str:
    ports = [str(p.get("port") or p.get("name") or "*") for p in obj.get("ports") or ()]
    return first(ports, 3) or UNSET


def _slice_addresses(obj: Json) -> str:
    addresses = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return first(addresses, 3) or UNSET


def _hosts(obj: Json) -> str:
    rules = at(obj, "spec.rules", [])
    hosts = [r["host"] for r in rules[:3] if r.get("host")]
    return first(hosts, 3, len(rules) if len(rules) > 3 else None) if hosts else "*"


def _parameters(obj: Json) -> str:
    given = at(obj, "spec.parameters")
    if not given:
        return NONE
    group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
    return f"{given.get('kind')}{group}/{given.get('name')}"


_SERVICE, _SLICE = "core.v1.ServiceSpec", "discovery.v1.EndpointSlice"

COLUMNS = {
    "services": (
        NAME,
        Column("Type", f"{_SERVICE}#type"),
        Column("Cluster-IP", f"{_SERVICE}#clusterIP", _cluster_ip),
        Column("External-IP", f"{_SERVICE}#externalIPs", _external),
        Column("Port(s)", f"{_SERVICE}#ports", _ports),
        AGE,
        wide("Selector", f"{_SERVICE}#selector", lambda obj: labels(at(obj, "spec.selector"))),
    ),
    "endpoints": (NAME, Column("Endpoints", "core.v1.Endpoints#subsets", _endpoints), AGE),
    "endpointslices.discovery.k8s.io": (
        NAME,
        Column("AddressType", f"{_SLICE}#addressType"),
        Column("Ports", f"{_SLICE}#ports", _slice_ports),
        Column("Endpoints", f"{_SLICE}#endpoints", _slice_addresses),
        AGE,
    ),
    "ingresses.networking.k8s.io": (
        NAME,
        Column(
            "Class",
            "The name of the IngressClass resource that should be used for additional "
            "configuration",
            "spec.ingressClassName",
            unset=NONE,
        ),
        Column(
            "Hosts",
            "Hosts that incoming requests are matched against before the ingress rule",
            _hosts,
        ),
        Column(
            "Address",
            "Address is a list containing ingress points for the load-balancer",
            lambda obj: ",".join(_balancers(obj)),
        ),
        Column(
            "Ports",
            "Ports of TLS configurations that open",
            lambda obj: "80, 443" if at(obj, "spec.tls") else "80",
        ),
        AGE,
    ),
    "ingressclasses.networking.k8s.io": (
        marked_default("ingressclass.kubernetes.io"),
        Column(
            "Controller",
            "Controller that is responsible for handling this class",
            "spec.controller",
        ),
        Column("Parameters", "A reference to a resource with additional parameters", _parameters),
        AGE,
    ),
    "networkpolicies.networking.k8s.io": (
        NAME,
        Column(
            "Pod-Selector",
            "networking.v1.NetworkPolicySpec#podSelector",
            lambda obj: selector(at(obj, "spec.podSelector", {})),
        ),
        AGE,
    ),
}
