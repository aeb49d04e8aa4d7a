"""What services may look like, and what of them may change."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from lockstep.apiserver.builtin.rules.containers import PROTOCOLS
from lockstep.apiserver.builtin.rules.metadata import labels
from lockstep.apiserver.builtin.rules.names import (
    dns_label,
    dns_subdomain,
    port_name,
    port_number,
)
from lockstep.apiserver.schema.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

Json = dict[str, Any]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")


def service(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a service."""
    spec = new.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if old is not None and spec == before:
        return []
    sort = spec.get("type")
    causes = _by_type(spec, sort)
    causes += _ports(spec, sort)
    causes += labels(spec.get("selector"), "spec.selector")
    affinity = spec.get("sessionAffinity")
    if affinity not in _AFFINITIES:
        causes.append(not_supported("spec.sessionAffinity", affinity, _AFFINITIES))
    if sort not in _TYPES:
        causes.append(not_supported("spec.type", sort, _TYPES))
    if spec.get("allocateLoadBalancerNodePorts") is not None and sort != "LoadBalancer":
        text = "may only be used when `type` is 'LoadBalancer'"
        causes.append(forbidden("spec.allocateLoadBalancerNodePorts", text))
    return [*causes, *_address_change(spec, before, sort)]


def _is_headless(spec: Json) -> bool:
    return bool(spec.get("clusterIP") == "None")


def _by_type(spec: Json, sort: str | None) -> list[Cause]:
    if sort == "ExternalName":
        name = (spec.get("externalName") or "").removesuffix(".")
        if not name:
            return [required("spec.externalName")]
        causes = [invalid("spec.externalName", name, error) for error in dns_subdomain(name)]
        text = "may not be set for ExternalName services"
        return [
            *causes,
            *(forbidden(f"spec.{f}", text) for f in ("clusterIPs", "ipFamilies") if spec.get(f)),
        ]
    causes = []
    if not spec.get("ports") and not _is_headless(spec):
        causes.append(required("spec.ports"))
    if sort in ("LoadBalancer", "NodePort") and _is_headless(spec):
        text = f"may not be set to 'None' for {sort} services"
        causes.append(invalid("spec.clusterIPs[0]", "None", text))
    return causes


def _ports(spec: Json, sort: str | None) -> list[Cause]:
    causes: list[Cause] = []
    ports = spec.get("ports") or []
    names: set[str] = set()
    taken: set[tuple[Any, ...]] = set()
    for position, port in enumerate(ports):
        path = f"spec.ports[{position}]"
        causes += _port(port, names, path, needs_name=len(ports) > 1)
        if port.get("nodePort") and sort == "ClusterIP":
            text = "may not be used when `type` is 'ClusterIP'"
            causes.append(forbidden(f"{path}.nodePort", text))
        own = (port.get("protocol"), port.get("port"))
        if own in taken:
            causes.append(duplicate(path, {"protocol": own[0], "port": own[1]}))
        taken.add(own)
        on_node = ("node", port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and on_node in taken:
            causes.append(duplicate(f"{path}.nodePort", port["nodePort"]))
        taken.add(on_node)
    return causes


def _port(port: Json, names: set[str], path: str, *, needs_name: bool) -> list[Cause]:
    causes: list[Cause] = []
    name = port.get("name")
    if not name:
        causes += [required(f"{path}.name")] if needs_name else []
    else:
        causes += [invalid(f"{path}.name", name, error) for error in dns_label(name)]
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
    number = port.get("port") or 0
    causes += [invalid(f"{path}.port", number, error) for error in port_number(number)]
    protocol = port.get("protocol")
    if protocol not in PROTOCOLS:
        causes.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    target = port.get("targetPort", number)
    errors = port_name(target) if isinstance(target, str) else port_number(target or 0)
    return [*causes, *(invalid(f"{path}.targetPort", target, error) for error in errors)]


def _address_change(spec: Json, before: Json, sort: str | None) -> list[Cause]:
    address, known = spec.get("clusterIP"), before.get("clusterIP")
    if "ExternalName" in (sort, before.get("type")):
        return []
    if known and address != known:
        return [invalid("spec.clusterIPs[0]", [address or ""], "may not change once set")]
    if address in (None, "", "None"):
        return []
    try:
        IPv4Address(address)
    except ValueError:
        text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [invalid("spec.clusterIPs[0]", address, text)]
    return []


RULES = {"Service": service}
