"""The addresses and node ports of services: handed out, kept through changes, given back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import Final
from zlib import crc32

from lockstep.api.wire import Json
from lockstep.apiserver import status
from lockstep.apiserver.schema.causes import Cause, invalid
from lockstep.apiserver.store import Key, Record, Store

NodePort = tuple[str, int]

NETWORK: Final = IPv4Network("10.96.0.0/16")
"""Where the addresses of services are; nothing routes there, but clients expect one to be named."""
API_SERVER: Final = str(NETWORK[1])
_PORTS: Final = range(30000, 32768)
_ADDRESSED: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_SERVICES: Final = "services"
_OWN: Final = Key(_SERVICES, "default", "kubernetes")


class ServiceAddresses:
    """Gives every service an address, and ports on the nodes to those that want some."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[Key, tuple[Record, frozenset[str], frozenset[NodePort]]] = {}

    def assign(self, service: Json, old: Json | None) -> None:
        """Fill in what *service* lacks, and require that what it has not had in *old* is free.

        Raises:
            StatusError: when an address or a port that it names belongs to another service.
        """
        spec, meta = service["spec"], service["metadata"]
        before = (old or {}).get("spec") or {}
        if spec == before:
            return
        addresses, ports = self._taken(Key(_SERVICES, meta["namespace"], meta["name"]))
        seed = crc32(meta["uid"].encode())
        causes: list[Cause] = []
        if not spec.get("clusterIP") or spec["clusterIP"] != before.get("clusterIP"):
            causes += _assign_address(spec, addresses, seed)
        if _wants_node_ports(spec):
            causes += _assign_node_ports(spec, ports, set(_node_ports(before)), seed)
        if causes:
            raise status.invalid("", "Service", meta["name"], causes)

    def _taken(self, but: Key) -> tuple[set[str], set[NodePort]]:
        """Return what all services hold, those that are about to be written among them."""
        held = {}
        for record in self._store.decided(_SERVICES):
            known = self._held.get(record.key)
            if known is None or known[0] is not record:
                spec = record.object().get("spec") or {}
                known = record, frozenset(_addresses(spec)), frozenset(_node_ports(spec))
            held[record.key] = known
        self._held = held
        others = [known for key, known in held.items() if key != but]
        reserved = set() if but == _OWN else {API_SERVER}
        addresses = reserved.union(*(known[1] for known in others))
        return addresses, set().union(*(known[2] for known in others))


def carry_over(new: Json, old: Json) -> None:
    """Keep what *old*, the same service, holds and *new* does not mention; drop what ends."""
    spec, before = new.get("spec"), old.get("spec") or {}
    if not isinstance(spec, dict):
        return
    sort, sort_before = spec.get("type") or "ClusterIP", before.get("type")
    if sort_before in _ADDRESSED and sort in _ADDRESSED:
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    elif sort_before in _ADDRESSED and spec.get("clusterIP") == before.get("clusterIP"):
        for field in (
            *("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"),
            *("internalTrafficPolicy", "externalTrafficPolicy"),
        ):
            spec.pop(field, None)
    _carry_node_ports(spec, before)


def _carry_node_ports(spec: Json, before: Json) -> None:
    ports = spec.get("ports") or []
    if _wants_node_ports(spec) and _wants_node_ports(before):
        known = {(p.get("protocol"), p.get("port")): p.get("nodePort") for p in before["ports"]}
        for port in ports:
            kept = known.get((port.get("protocol") or "TCP", port.get("port")))
            if not port.get("nodePort") and kept:
                port["nodePort"] = kept
    elif _wants_node_ports(before) and _is_same(ports, before.get("ports") or []):
        for port in ports:
            port.pop("nodePort", None)
    if not _has_node_ports(spec) and _has_node_ports(before):
        spec.pop("externalTrafficPolicy", None)
    if spec.get("type") != "LoadBalancer" and before.get("type") == "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"):
            spec.pop(field, None)


def allocate_cluster_ip(network: IPv4Network, taken: Collection[str], seed: int) -> str:
    """Return an address of *network* that is not *taken*.

    The search begins at a place that follows from *seed*, so that addresses of services that
    come and go are not handed on at once.

    Raises:
        ValueError: when every address is taken.
    """
    # The first address is the API server's own service; the last one is for broadcasts.
    count = network.num_addresses - 3
    for step in range(count):
        candidate = str(network[2 + (seed + step) % count])
        if candidate not in taken:
            return candidate
    raise ValueError("range is full")


def _assign_address(spec: Json, taken: Collection[str], seed: int) -> Iterator[Cause]:
    given = spec.get("clusterIP")
    if spec.get("type") not in _ADDRESSED or given == "None":
        return
    if not given:
        try:
            given = allocate_cluster_ip(NETWORK, taken, seed)
        except ValueError as error:
            text = f"failed to allocate a serviceIP: {error}"
            yield invalid("spec.clusterIPs", [], text)
            return
        spec["clusterIP"], spec["clusterIPs"] = given, [given]
        return
    wrong = _refusal(given, taken)
    if wrong:
        yield invalid("spec.clusterIPs", [given], f"failed to allocate IP {given}: {wrong}")


def _refusal(address: str, taken: Collection[str]) -> str:
    if address in taken:
        return "provided IP is already allocated"
    try:
        inside = IPv4Address(address) in NETWORK
    except AddressValueError:
        inside = False
    edges = (str(NETWORK.network_address), str(NETWORK.broadcast_address))
    if not inside or address in edges:
        return "the provided network does not match the current range"
    return ""


def _assign_node_ports(
    spec: Json, taken: set[NodePort], own: set[NodePort], seed: int
) -> Iterator[Cause]:
    ports = spec.get("ports") or []
    mine: set[NodePort] = set()
    for position, port in enumerate(ports):
        number = port.get("nodePort")
        if not number:
            continue
        held = (port["protocol"], number)
        path = f"spec.ports[{position}].nodePort"
        mine.add(held)
        if held in own:
            continue
        if number not in _PORTS:
            text = "provided port is not in the valid range. The range of valid ports is "
            yield invalid(path, number, f"{text}{_PORTS.start}-{_PORTS.stop - 1}")
        elif held in taken:
            yield invalid(path, number, "provided port is already allocated")
    for port in ports:
        if not port.get("nodePort"):
            port["nodePort"] = _free_port(port, ports, taken | mine, seed)
            mine.add((port["protocol"], port["nodePort"]))


def _free_port(port: Json, ports: list[Json], taken: set[NodePort], seed: int) -> int:
    """Return a port of the nodes: that of the same port under another protocol, if it is free."""
    shared = [p["nodePort"] for p in ports if p.get("nodePort") and p["port"] == port["port"]]
    some = (_PORTS[(seed + step) % len(_PORTS)] for step in range(len(_PORTS)))
    for number in (*shared, *some):
        if (port["protocol"], number) not in taken:
            return int(number)
    raise status.internal("failed to allocate a nodePort: range is full")


def _wants_node_ports(spec: Json) -> bool:
    sort = spec.get("type")
    allocates = spec.get("allocateLoadBalancerNodePorts", True)
    return sort == "NodePort" or (sort == "LoadBalancer" and allocates is not False)


def _has_node_ports(spec: Json) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))


def _is_same(ports: list[Json], before: list[Json]) -> bool:
    return [p.get("nodePort") for p in ports] == [p.get("nodePort") for p in before]


def _addresses(spec: Json) -> Iterator[str]:
    for address in spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else ()):
        if address != "None":
            yield address


def _node_ports(spec: Json) -> Iterator[NodePort]:
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port.get("protocol", "TCP"), port["nodePort"]
