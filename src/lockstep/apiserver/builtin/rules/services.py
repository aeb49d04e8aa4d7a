"""What services may look like, and what of them may change."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.containers import PROTOCOLS
from lockstep.apiserver.builtin.rules.metadata import labels
from lockstep.apiserver.builtin.rules.names import (
    dns_label,
    dns_subdomain,
    one_of,
    port_name,
    port_number,
    problems,
)
from lockstep.apiserver.schema.causes import (
    Cause,
    duplicate,
    forbidden,
    invalid,
    required,
)

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")


def service(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a service."""
    spec = new.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if old is not None and spec == before:
        return
    sort = spec.get("type")
    yield from _by_type(spec, sort)
    yield from _ports(spec, sort)
    yield from labels(spec.get("selector"), "spec.selector")
    affinity = spec.get("sessionAffinity")
    yield from one_of("spec.sessionAffinity", affinity, _AFFINITIES)
    yield from one_of("spec.type", sort, _TYPES)
    if spec.get("allocateLoadBalancerNodePorts") is not None and sort != "LoadBalancer":
        text = "may only be used when `type` is 'LoadBalancer'"
        yield forbidden("spec.allocateLoadBalancerNodePorts", text)
    yield from _address_change(spec, before, sort)


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


def _ports(spec: Json, sort: str | None) -> Iterator[Cause]:
    ports = spec.get("ports") or []
    names: set[str] = set()
    taken: set[tuple[Any, ...]] = set()
    for position, port in enumerate(ports):
        path = f"spec.ports[{position}]"
        yield from _port(port, names, path, needs_name=len(ports) > 1)
        if port.get("nodePort") and sort == "ClusterIP":
            text = "may not be used when `type` is 'ClusterIP'"
            yield forbidden(f"{path}.nodePort", text)
        own = (port.get("protocol"), port.get("port"))
        if own in taken:
            yield duplicate(path, {"protocol": own[0], "port": own[1]})
        taken.add(own)
        on_node = ("node", port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and on_node in taken:
            yield duplicate(f"{path}.nodePort", port["nodePort"])
        taken.add(on_node)


def _port(port: Json, names: set[str], path: str, *, needs_name: bool) -> Iterator[Cause]:
    name = port.get("name")
    if not name:
        yield from [required(f"{path}.name")] if needs_name else []
    else:
        yield from problems(f"{path}.name", name, dns_label)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    number = port.get("port") or 0
    yield from problems(f"{path}.port", number, port_number)
    protocol = port.get("protocol")
    yield from one_of(f"{path}.protocol", protocol, PROTOCOLS)
    target = port.get("targetPort", number)
    errors = port_name(target) if isinstance(target, str) else port_number(target or 0)
    yield from (invalid(f"{path}.targetPort", target, error) for error in errors)


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
