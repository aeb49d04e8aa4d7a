"""Defaults of services and what belongs to networks."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.defaults.values import values

_THREE_HOURS = 10800
_SERVICE = values({}, {"spec.sessionAffinity": "None", "spec.type": "ClusterIP"})
_OVER_TCP = values({}, {"protocol": "TCP"})


def service(obj: Json) -> None:
    """Fill in a service, except for its address."""
    spec = obj.setdefault("spec", {})
    _SERVICE(obj)
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", _THREE_HOURS)
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
    "core.v1.EndpointPort": _OVER_TCP,
    "discovery.v1.EndpointPort": values({"name": "", "protocol": "TCP"}),
    "networking.v1.NetworkPolicy": network_policy,
    "networking.v1.NetworkPolicyPort": _OVER_TCP,
    "networking.v1.IngressClass": ingress_class,
}
