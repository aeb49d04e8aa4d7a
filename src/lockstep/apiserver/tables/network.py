"""The tables of services and of what belongs to networks."""

from __future__ import annotations

from typing import Any

from lockstep.apiserver.tables.format import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Column,
    Layout,
    age,
    at,
    first,
    labels,
    name_of,
    selector,
    wide,
)

Json = dict[str, Any]


def _service(obj: Json, now: float) -> Cells:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        name_of(obj),
        spec.get("type", ""),
        addresses[0],
        _external(obj, spec),
        ",".join(_port(p) for p in spec.get("ports") or ()) or NONE,
        age(obj, now),
        labels(spec.get("selector")),
    ]


def _external(obj: Json, spec: Json) -> str:
    type_, external = spec.get("type"), spec.get("externalIPs") or []
    if type_ in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if type_ == "LoadBalancer":
        return ",".join([*_balancers(obj), *external]) or "<pending>"
    return str(spec.get("externalName", "")) if type_ == "ExternalName" else UNKNOWN


def _balancers(obj: Json) -> list[str]:
    points = at(obj, "status.loadBalancer.ingress", [])
    return sorted({p.get("ip") or p.get("hostname") for p in points} - {None, ""})


def _port(port: Json) -> str:
    protocol = port.get("protocol", "TCP")
    if port.get("nodePort"):
        return f"{port['port']}:{port['nodePort']}/{protocol}"
    return f"{port.get('port')}/{protocol}"


def _endpoints(obj: Json, now: float) -> Cells:
    listed = []
    for subset in obj.get("subsets") or ():
        addresses = [a.get("ip", "") for a in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            listed.extend(addresses)
        for port in ports or ():
            listed.extend(_joined(address, port.get("port")) for address in addresses)
    shown = first(listed, 3) if obj.get("subsets") else NONE
    return [name_of(obj), shown, age(obj, now)]


def _joined(address: str, port: int | None) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoint_slice(obj: Json, now: float) -> Cells:
    ports = [str(p.get("port") or p.get("name") or "*") for p in obj.get("ports") or ()]
    addresses = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return [
        name_of(obj),
        obj.get("addressType", ""),
        first(ports, 3) or UNSET,
        first(addresses, 3) or UNSET,
        age(obj, now),
    ]


def _ingress(obj: Json, now: float) -> Cells:
    spec = obj.get("spec") or {}
    rules = spec.get("rules") or []
    hosts = [r["host"] for r in rules[:3] if r.get("host")]
    return [
        name_of(obj),
        spec.get("ingressClassName", NONE),
        first(hosts, 3, len(rules) if len(rules) > 3 else None) if hosts else "*",
        ",".join(_balancers(obj)),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _ingress_class(obj: Json, now: float) -> Cells:
    name, given = name_of(obj), at(obj, "spec.parameters")
    marks = at(obj, "metadata.annotations", {})
    if marks.get("ingressclass.kubernetes.io/is-default-class") == "true":
        name += " (default)"
    shown = NONE
    if given:
        group = f".{given['apiGroup']}" if given.get("apiGroup") else ""
        shown = f"{given.get('kind')}{group}/{given.get('name')}"
    return [name, at(obj, "spec.controller", ""), shown, age(obj, now)]


def _network_policy(obj: Json, now: float) -> Cells:
    return [name_of(obj), selector(at(obj, "spec.podSelector", {})), age(obj, now)]


_SERVICE, _SLICE = "core.v1.ServiceSpec", "discovery.v1.EndpointSlice"

LAYOUTS = {
    "services": Layout(
        (
            NAME,
            Column("Type", f"{_SERVICE}#type"),
            Column("Cluster-IP", f"{_SERVICE}#clusterIP"),
            Column("External-IP", f"{_SERVICE}#externalIPs"),
            Column("Port(s)", f"{_SERVICE}#ports"),
            AGE,
            wide("Selector", f"{_SERVICE}#selector"),
        ),
        _service,
    ),
    "endpoints": Layout((NAME, Column("Endpoints", "core.v1.Endpoints#subsets"), AGE), _endpoints),
    "endpointslices.discovery.k8s.io": Layout(
        (
            NAME,
            Column("AddressType", f"{_SLICE}#addressType"),
            Column("Ports", f"{_SLICE}#ports"),
            Column("Endpoints", f"{_SLICE}#endpoints"),
            AGE,
        ),
        _endpoint_slice,
    ),
    "ingresses.networking.k8s.io": Layout(
        (
            NAME,
            Column(
                "Class",
                "The name of the IngressClass resource that should be used for additional "
                "configuration",
            ),
            Column(
                "Hosts", "Hosts that incoming requests are matched against before the ingress rule"
            ),
            Column("Address", "Address is a list containing ingress points for the load-balancer"),
            Column("Ports", "Ports of TLS configurations that open"),
            AGE,
        ),
        _ingress,
    ),
    "ingressclasses.networking.k8s.io": Layout(
        (
            NAME,
            Column("Controller", "Controller that is responsible for handling this class"),
            Column("Parameters", "A reference to a resource with additional parameters"),
            AGE,
        ),
        _ingress_class,
    ),
    "networkpolicies.networking.k8s.io": Layout(
        (NAME, Column("Pod-Selector", "networking.v1.NetworkPolicySpec#podSelector"), AGE),
        _network_policy,
    ),
}
