"""The built-in resources that are served.

Names, short names, categories, subresources and selectable fields are those of Kubernetes v1.36.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lockstep.apiserver.builtin.defaults import BEGINNINGS, prepare
from lockstep.apiserver.builtin.kind import ALL_VERBS, Kind
from lockstep.apiserver.builtin.rules import validate

_STATUS = frozenset({"status"})
_SCALED = frozenset({"status", "scale"})
_ALL = ("all",)
_EXTENSIONS = ("api-extensions",)
_API = "io.k8s.api"


def _leave(_new: dict[str, Any]) -> None:
    """Add nothing to a new object."""


def _family(
    group: str, version: str, package: str, kinds: list[tuple[str, str, dict[str, Any]]]
) -> list[Kind]:
    return [
        Kind(
            group=group,
            version=version,
            plural=plural,
            kind=kind,
            singular=kind.lower(),
            schema_name=f"{package}.{kind}",
            prepare=partial(prepare, f"{package}.{kind}"),
            begin=BEGINNINGS.get(f"{package}.{kind}", _leave),
            validate=partial(validate, kind, extra.get("namespaced", True)),
            **{"namespaced": True, "storage": (group, plural), **extra},
        )
        for plural, kind, extra in kinds
    ]


_CLUSTER: dict[str, Any] = {"namespaced": False}
_COUNTED: dict[str, Any] = {"counts_generation": True}
_CLUSTER_COUNTED: dict[str, Any] = {**_CLUSTER, **_COUNTED}

_EVENT_FIELDS = (
    ("involvedObject.kind", ""),
    ("involvedObject.namespace", ""),
    ("involvedObject.name", ""),
    ("involvedObject.uid", ""),
    ("involvedObject.apiVersion", ""),
    ("involvedObject.resourceVersion", ""),
    ("involvedObject.fieldPath", ""),
    ("reason", ""),
    ("reportingComponent", ""),
    ("source", ""),
    ("type", ""),
)
_EVENT: dict[str, Any] = {
    "short_names": ("ev",),
    "selectable": _EVENT_FIELDS,
    "storage": ("", "events"),
}

_POD: dict[str, Any] = {
    **_COUNTED,
    "short_names": ("po",),
    "categories": _ALL,
    "subresources": frozenset(
        {
            *("status", "binding", "eviction", "ephemeralcontainers", "resize"),
            *("log", "attach", "exec", "portforward", "proxy"),
        }
    ),
    "selectable": (
        ("spec.nodeName", ""),
        ("spec.restartPolicy", ""),
        ("spec.schedulerName", ""),
        ("spec.serviceAccountName", ""),
        ("spec.hostNetwork", "false"),
        ("status.phase", ""),
        ("status.podIP", ""),
        ("status.podIPs", ""),
        ("status.nominatedNodeName", ""),
    ),
}

_CORE: list[tuple[str, str, dict[str, Any]]] = [
    ("configmaps", "ConfigMap", {"short_names": ("cm",)}),
    ("endpoints", "Endpoints", {"short_names": ("ep",)}),
    ("events", "Event", _EVENT),
    ("limitranges", "LimitRange", {"short_names": ("limits",)}),
    (
        "namespaces",
        "Namespace",
        {
            **_CLUSTER,
            "short_names": ("ns",),
            "subresources": frozenset({"status", "finalize"}),
            "selectable": (("status.phase", ""),),
            "verbs": tuple(v for v in ALL_VERBS if v != "deletecollection"),
        },
    ),
    (
        "nodes",
        "Node",
        {
            **_CLUSTER,
            "short_names": ("no",),
            "subresources": _STATUS,
            "selectable": (("spec.unschedulable", "false"),),
            "status_at_creation": True,
        },
    ),
    (
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        {"short_names": ("pvc",), "subresources": _STATUS},
    ),
    (
        "persistentvolumes",
        "PersistentVolume",
        {**_CLUSTER, "short_names": ("pv",), "subresources": _STATUS},
    ),
    ("pods", "Pod", _POD),
    ("podtemplates", "PodTemplate", _COUNTED),
    (
        "replicationcontrollers",
        "ReplicationController",
        {
            **_COUNTED,
            "short_names": ("rc",),
            "categories": _ALL,
            "subresources": _SCALED,
            "selectable": (("status.replicas", "0"),),
        },
    ),
    ("resourcequotas", "ResourceQuota", {"short_names": ("quota",), "subresources": _STATUS}),
    ("secrets", "Secret", {"selectable": (("type", ""),)}),
    (
        "serviceaccounts",
        "ServiceAccount",
        {"short_names": ("sa",), "subresources": frozenset({"token"})},
    ),
    (
        "services",
        "Service",
        {
            "short_names": ("svc",),
            "categories": _ALL,
            "subresources": frozenset({"status", "proxy"}),
            "selectable": (("spec.clusterIP", ""), ("spec.type", "")),
        },
    ),
]

_APPS: list[tuple[str, str, dict[str, Any]]] = [
    ("controllerrevisions", "ControllerRevision", {}),
    (
        "daemonsets",
        "DaemonSet",
        {**_COUNTED, "short_names": ("ds",), "categories": _ALL, "subresources": _STATUS},
    ),
    (
        "deployments",
        "Deployment",
        {**_COUNTED, "short_names": ("deploy",), "categories": _ALL, "subresources": _SCALED},
    ),
    (
        "replicasets",
        "ReplicaSet",
        {
            **_COUNTED,
            "short_names": ("rs",),
            "categories": _ALL,
            "subresources": _SCALED,
            "selectable": (("status.replicas", "0"),),
        },
    ),
    (
        "statefulsets",
        "StatefulSet",
        {**_COUNTED, "short_names": ("sts",), "categories": _ALL, "subresources": _SCALED},
    ),
]

_BATCH: list[tuple[str, str, dict[str, Any]]] = [
    (
        "cronjobs",
        "CronJob",
        {**_COUNTED, "short_names": ("cj",), "categories": _ALL, "subresources": _STATUS},
    ),
    (
        "jobs",
        "Job",
        {
            **_COUNTED,
            "categories": _ALL,
            "subresources": _STATUS,
            "selectable": (("status.successful", "0"),),
        },
    ),
]

_ADMISSION: list[tuple[str, str, dict[str, Any]]] = [
    (plural, kind, {**_CLUSTER_COUNTED, "categories": _EXTENSIONS, "subresources": subresources})
    for plural, kind, subresources in (
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", frozenset()),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", frozenset()),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", frozenset()),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", _STATUS),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", frozenset()),
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", frozenset()),
    )
]

_NETWORKING: list[tuple[str, str, dict[str, Any]]] = [
    ("ingressclasses", "IngressClass", _CLUSTER_COUNTED),
    ("ingresses", "Ingress", {**_COUNTED, "short_names": ("ing",), "subresources": _STATUS}),
    ("networkpolicies", "NetworkPolicy", {**_COUNTED, "short_names": ("netpol",)}),
]

_RBAC: list[tuple[str, str, dict[str, Any]]] = [
    ("clusterrolebindings", "ClusterRoleBinding", _CLUSTER),
    ("clusterroles", "ClusterRole", _CLUSTER),
    ("rolebindings", "RoleBinding", {}),
    ("roles", "Role", {}),
]

_RESOURCE: list[tuple[str, str, dict[str, Any]]] = [
    ("deviceclasses", "DeviceClass", _CLUSTER_COUNTED),
    ("resourceclaims", "ResourceClaim", {"subresources": _STATUS}),
    ("resourceclaimtemplates", "ResourceClaimTemplate", {}),
    (
        "resourceslices",
        "ResourceSlice",
        {**_CLUSTER_COUNTED, "selectable": (("spec.driver", ""), ("spec.nodeName", ""))},
    ),
]

_STORAGE: list[tuple[str, str, dict[str, Any]]] = [
    ("csidrivers", "CSIDriver", _CLUSTER_COUNTED),
    ("csinodes", "CSINode", _CLUSTER),
    ("csistoragecapacities", "CSIStorageCapacity", {}),
    ("storageclasses", "StorageClass", {**_CLUSTER, "short_names": ("sc",)}),
    ("volumeattachments", "VolumeAttachment", {**_CLUSTER, "subresources": _STATUS}),
    ("volumeattributesclasses", "VolumeAttributesClass", {**_CLUSTER, "short_names": ("vac",)}),
]

_AUTOSCALING: list[tuple[str, str, dict[str, Any]]] = [
    (
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        {"short_names": ("hpa",), "categories": _ALL, "subresources": _STATUS},
    )
]

_SINGLES: list[Kind] = [
    *_family(
        "apiextensions.k8s.io",
        "v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        [
            (
                "customresourcedefinitions",
                "CustomResourceDefinition",
                {
                    **_CLUSTER_COUNTED,
                    "short_names": ("crd", "crds"),
                    "categories": _EXTENSIONS,
                    "subresources": _STATUS,
                },
            )
        ],
    ),
    *_family(
        "apiregistration.k8s.io",
        "v1",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
        [
            (
                "apiservices",
                "APIService",
                {**_CLUSTER, "categories": _EXTENSIONS, "subresources": _STATUS},
            )
        ],
    ),
    # The version in which autoscalers are stored comes first.
    *_family("autoscaling", "v2", f"{_API}.autoscaling.v2", _AUTOSCALING),
    *_family("autoscaling", "v1", f"{_API}.autoscaling.v1", _AUTOSCALING),
    *_family(
        "certificates.k8s.io",
        "v1",
        f"{_API}.certificates.v1",
        [
            (
                "certificatesigningrequests",
                "CertificateSigningRequest",
                {
                    **_CLUSTER,
                    "short_names": ("csr",),
                    "subresources": frozenset({"status", "approval"}),
                    "selectable": (("spec.signerName", ""),),
                },
            )
        ],
    ),
    *_family("coordination.k8s.io", "v1", f"{_API}.coordination.v1", [("leases", "Lease", {})]),
    *_family(
        "discovery.k8s.io",
        "v1",
        f"{_API}.discovery.v1",
        [("endpointslices", "EndpointSlice", _COUNTED)],
    ),
    *_family("events.k8s.io", "v1", f"{_API}.events.v1", [("events", "Event", _EVENT)]),
    *_family(
        "node.k8s.io", "v1", f"{_API}.node.v1", [("runtimeclasses", "RuntimeClass", _CLUSTER)]
    ),
    *_family(
        "policy",
        "v1",
        f"{_API}.policy.v1",
        [
            (
                "poddisruptionbudgets",
                "PodDisruptionBudget",
                {**_COUNTED, "short_names": ("pdb",), "subresources": _STATUS},
            )
        ],
    ),
    *_family(
        "scheduling.k8s.io",
        "v1",
        f"{_API}.scheduling.v1",
        [("priorityclasses", "PriorityClass", {**_CLUSTER_COUNTED, "short_names": ("pc",)})],
    ),
]

BUILTINS: list[Kind] = [
    *_family("", "v1", f"{_API}.core.v1", _CORE),
    *_family("apps", "v1", f"{_API}.apps.v1", _APPS),
    *_family("batch", "v1", f"{_API}.batch.v1", _BATCH),
    *_family("admissionregistration.k8s.io", "v1", f"{_API}.admissionregistration.v1", _ADMISSION),
    *_family("networking.k8s.io", "v1", f"{_API}.networking.v1", _NETWORKING),
    *_family("rbac.authorization.k8s.io", "v1", f"{_API}.rbac.v1", _RBAC),
    *_family("resource.k8s.io", "v1", f"{_API}.resource.v1", _RESOURCE),
    *_family("storage.k8s.io", "v1", f"{_API}.storage.v1", _STORAGE),
    *_SINGLES,
]
"""Every built-in resource."""
