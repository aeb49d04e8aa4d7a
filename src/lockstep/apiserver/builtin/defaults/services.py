"""Defaults of services and what belongs to networks."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_THREE_HOURS = 10800


def service(obj: Json) -> None:
    """Fill in a service, except for its address."""
    spec = obj.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", _THREE_HOURS)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort") and port.get("port"):
            port["targetPort"] = port["port"]
    reaches_out = spec["type"] == "ClusterIP" and spec.get("externalIPs")
    if spec["type"] in ("NodePort", "LoadBalancer") or reaches_out:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def families(obj: Json) -> None:
    """Say of which families the addresses of a new service are."""
    spec = obj["spec"]
    if spec["type"] in ("ClusterIP", "NodePort", "LoadBalancer"):
        # Nothing selects the endpoints of such a service, so they may be of either family.
        is_open = spec.get("clusterIP") == "None" and not spec.get("selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if is_open else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_open else "SingleStack")
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def endpoint_port(obj: Json) -> None:
    """Let a port of endpoints speak TCP."""
    if not obj.get("protocol"):
        obj["protocol"] = "TCP"


def slice_port(obj: Json) -> None:
    """Name a port of an endpoint slice and let it speak TCP."""
    obj.setdefault("name", "")
    obj.setdefault("protocol", "TCP")


def network_policy(obj: Json) -> None:
    """Let a policy that does not say what it is about be about what it has rules for."""
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def ingress_class(obj: Json) -> None:
    """Let the parameters of an ingress class be the cluster's."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters:
        parameters.setdefault("scope", "Cluster")


FILLS = {
    "core.v1.Service": service,
    "core.v1.EndpointPort": endpoint_port,
    "discovery.v1.EndpointPort": slice_port,
    "networking.v1.NetworkPolicy": network_policy,
    "networking.v1.NetworkPolicyPort": endpoint_port,
    "networking.v1.IngressClass": ingress_class,
}
