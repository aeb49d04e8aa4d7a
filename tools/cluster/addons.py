"""What Kubernetes' installers put into a cluster beside its own programs: CoreDNS."""

from __future__ import annotations

from typing import Any, Final

from tools.cluster import layout

Json = dict[str, Any]

NAMESPACE: Final = "kube-system"
_COREFILE: Final = f"""\
.:1053 {{
    errors
    health :8080
    ready :8181
    kubernetes {layout.DOMAIN} in-addr.arpa {{
        pods insecure
        fallthrough in-addr.arpa
    }}
    cache 10
    loadbalance
}}
"""
_LABELS: Final = {"k8s-app": "kube-dns"}
_RESTRICTED: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def dns(image: str) -> list[Json]:
    """Return CoreDNS with its account, its rights and the Service that pods ask."""
    return [
        _object("v1", "ServiceAccount"),
        _object("v1", "ConfigMap", data={"Corefile": _COREFILE}),
        _object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            rules=[
                _rule("", "endpoints", "services", "pods", "namespaces"),
                _rule("discovery.k8s.io", "endpointslices"),
            ],
        ),
        _object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            roleRef={
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "coredns",
            },
            subjects=[{"kind": "ServiceAccount", "name": "coredns", "namespace": NAMESPACE}],
        ),
        _object(
            "apps/v1",
            "Deployment",
            spec={
                "replicas": 2,
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image)},
            },
        ),
        _object(
            "v1",
            "Service",
            name="kube-dns",
            spec={
                "clusterIP": layout.DNS_ADDRESS,
                "selector": _LABELS,
                "ports": [
                    {"name": name, "port": 53, "targetPort": 1053, "protocol": protocol}
                    for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
                ],
            },
        ),
    ]


def _pod(image: str) -> Json:
    container = {
        "name": "coredns",
        "image": image,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"containerPort": 1053, "protocol": "UDP"},
            {"containerPort": 1053, "protocol": "TCP"},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "170Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 10},
        "securityContext": _RESTRICTED,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    away = {"labelSelector": {"matchLabels": _LABELS}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        # A node that stops takes one of them along.
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": away}
                ]
            }
        },
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }


def _rule(group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["list", "watch"]}


def _object(version: str, kind: str, name: str = "coredns", **fields: Any) -> Json:
    metadata: Json = {"name": name}
    if not kind.startswith("Cluster"):
        metadata["namespace"] = NAMESPACE
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
