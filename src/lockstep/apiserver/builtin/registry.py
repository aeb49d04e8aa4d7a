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
_API = "io.k8s.api"
_ALL, _EXTENSIONS = ("all",), ("api-extensions",)
_EVENT_FIELDS = tuple(
    (name, "")
    for name in (
        *("involvedObject.kind", "involvedObject.namespace", "involvedObject.name"),
        *("involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion"),
        *("involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
    )
)
_POD_FIELDS = (
    ("spec.nodeName", ""),
    ("spec.restartPolicy", ""),
    ("spec.schedulerName", ""),
    ("spec.serviceAccountName", ""),
    ("spec.hostNetwork", "false"),
    ("status.phase", ""),
    ("status.podIP", ""),
    ("status.podIPs", ""),
    ("status.nominatedNodeName", ""),
)
_POD_SUBRESOURCES = frozenset(
    {
        *("status", "binding", "eviction", "ephemeralcontainers", "resize"),
        *("log", "attach", "exec", "portforward", "proxy"),
    }
)


def _leave(_new: dict[str, Any]) -> None:
    """Add nothing to a new object."""


class _Family:
    """Kinds of one group and version, whose schemas are in one *package*."""

    def __init__(self, group: str, version: str = "v1", package: str = "") -> None:
        self._group, self._version = group, version
        self._package = package or f"{_API}.{group.partition('.')[0] or 'core'}.{version}"

    def of(
        self, plural: str, kind: str, *short: str, in_cluster: bool = False, **more: Any
    ) -> Kind:
        """Return one kind with its short names; *in_cluster* for one without a namespace."""
        schema = f"{self._package}.{kind}"
        return Kind(
            group=self._group,
            version=self._version,
            plural=plural,
            kind=kind,
            namespaced=not in_cluster,
            singular=kind.lower(),
            schema_name=schema,
            short_names=short,
            prepare=partial(prepare, schema),
            begin=BEGINNINGS.get(schema, _leave),
            validate=partial(validate, kind, not in_cluster),
            **{"storage": (self._group, plural), **more},
        )

    def counted(self, plural: str, kind: str, *short: str, **more: Any) -> Kind:
        """Return one kind as ``of``, of whose objects the server counts the generations."""
        return self.of(plural, kind, *short, counts_generation=True, **more)


def _core(core: _Family) -> list[Kind]:
    return [
        core.of("configmaps", "ConfigMap", "cm"),
        core.of("endpoints", "Endpoints", "ep"),
        _event(core),
        core.of("limitranges", "LimitRange", "limits"),
        *_of_clusters(core),
        core.of("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=_STATUS),
        core.of(
            "persistentvolumes", "PersistentVolume", "pv", in_cluster=True, subresources=_STATUS
        ),
        core.counted(
            *("pods", "Pod", "po"),
            categories=_ALL,
            subresources=_POD_SUBRESOURCES,
            selectable=_POD_FIELDS,
        ),
        core.counted("podtemplates", "PodTemplate"),
        _replicated(core, "replicationcontrollers", "ReplicationController", "rc"),
        core.of("resourcequotas", "ResourceQuota", "quota", subresources=_STATUS),
        core.of("secrets", "Secret", selectable=(("type", ""),)),
        core.of("serviceaccounts", "ServiceAccount", "sa", subresources=frozenset({"token"})),
        core.of(
            *("services", "Service", "svc"),
            categories=_ALL,
            subresources=frozenset({"status", "proxy"}),
            selectable=(("spec.clusterIP", ""), ("spec.type", "")),
        ),
    ]


def _of_clusters(core: _Family) -> list[Kind]:
    one_by_one = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    return [
        core.of(
            *("namespaces", "Namespace", "ns"),
            in_cluster=True,
            subresources=frozenset({"status", "finalize"}),
            selectable=(("status.phase", ""),),
            verbs=one_by_one,
        ),
        core.of(
            *("nodes", "Node", "no"),
            in_cluster=True,
            subresources=_STATUS,
            selectable=(("spec.unschedulable", "false"),),
            status_at_creation=True,
        ),
    ]


def _event(family: _Family) -> Kind:
    return family.of("events", "Event", "ev", selectable=_EVENT_FIELDS, storage=("", "events"))


def _replicated(family: _Family, plural: str, kind: str, short: str) -> Kind:
    selectable = (("status.replicas", "0"),)
    return family.counted(
        plural, kind, short, categories=_ALL, subresources=_SCALED, selectable=selectable
    )


def _apps(apps: _Family, batch: _Family) -> list[Kind]:
    scaled: dict[str, Any] = {"categories": _ALL, "subresources": _SCALED}
    stated: dict[str, Any] = {"categories": _ALL, "subresources": _STATUS}
    return [
        apps.of("controllerrevisions", "ControllerRevision"),
        apps.counted("daemonsets", "DaemonSet", "ds", **stated),
        apps.counted("deployments", "Deployment", "deploy", **scaled),
        _replicated(apps, "replicasets", "ReplicaSet", "rs"),
        apps.counted("statefulsets", "StatefulSet", "sts", **scaled),
        batch.counted("cronjobs", "CronJob", "cj", **stated),
        batch.counted("jobs", "Job", selectable=(("status.successful", "0"),), **stated),
    ]


def _admission(admission: _Family) -> list[Kind]:
    extends: dict[str, Any] = {"in_cluster": True, "categories": _EXTENSIONS}
    policies = ("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
    return [
        admission.counted("mutatingadmissionpolicies", "MutatingAdmissionPolicy", **extends),
        admission.counted(
            "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", **extends
        ),
        admission.counted(
            "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", **extends
        ),
        admission.counted(*policies, subresources=_STATUS, **extends),
        admission.counted(
            "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", **extends
        ),
        admission.counted(
            "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", **extends
        ),
    ]


def _resource(resource: _Family) -> list[Kind]:
    selectable = (("spec.driver", ""), ("spec.nodeName", ""))
    return [
        resource.counted("deviceclasses", "DeviceClass", in_cluster=True),
        resource.of("resourceclaims", "ResourceClaim", subresources=_STATUS),
        resource.of("resourceclaimtemplates", "ResourceClaimTemplate"),
        resource.counted("resourceslices", "ResourceSlice", in_cluster=True, selectable=selectable),
    ]


def _storage(storage: _Family) -> list[Kind]:
    return [
        storage.counted("csidrivers", "CSIDriver", in_cluster=True),
        storage.of("csinodes", "CSINode", in_cluster=True),
        storage.of("csistoragecapacities", "CSIStorageCapacity"),
        storage.of("storageclasses", "StorageClass", "sc", in_cluster=True),
        storage.of("volumeattachments", "VolumeAttachment", in_cluster=True, subresources=_STATUS),
        storage.of("volumeattributesclasses", "VolumeAttributesClass", "vac", in_cluster=True),
    ]


def _others() -> list[Kind]:
    stated: dict[str, Any] = {"categories": _EXTENSIONS, "subresources": _STATUS}
    scaler = ("horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa")
    scaled: dict[str, Any] = {"categories": _ALL, "subresources": _STATUS}
    crds = _Family(
        "apiextensions.k8s.io", "v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
    )
    services = _Family(
        "apiregistration.k8s.io", "v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1"
    )
    definition = ("customresourcedefinitions", "CustomResourceDefinition", "crd", "crds")
    return [
        crds.counted(*definition, in_cluster=True, **stated),
        services.of("apiservices", "APIService", in_cluster=True, **stated),
        # The version in which autoscalers are stored comes first.
        _Family("autoscaling", "v2").of(*scaler, **scaled),
        _Family("autoscaling", "v1").of(*scaler, **scaled),
        _Family("certificates.k8s.io").of(
            *("certificatesigningrequests", "CertificateSigningRequest", "csr"),
            in_cluster=True,
            subresources=frozenset({"status", "approval"}),
            selectable=(("spec.signerName", ""),),
        ),
        _Family("coordination.k8s.io").of("leases", "Lease"),
        _Family("discovery.k8s.io").counted("endpointslices", "EndpointSlice"),
        _event(_Family("events.k8s.io")),
        _Family("node.k8s.io").of("runtimeclasses", "RuntimeClass", in_cluster=True),
        _Family("policy").counted(
            "poddisruptionbudgets", "PodDisruptionBudget", "pdb", subresources=_STATUS
        ),
        _Family("scheduling.k8s.io").counted(
            "priorityclasses", "PriorityClass", "pc", in_cluster=True
        ),
    ]


_NETWORKING, _RBAC = _Family("networking.k8s.io"), _Family("rbac.authorization.k8s.io")

BUILTINS: list[Kind] = [
    *_core(_Family("")),
    *_apps(_Family("apps"), _Family("batch")),
    *_admission(_Family("admissionregistration.k8s.io")),
    _NETWORKING.counted("ingressclasses", "IngressClass", in_cluster=True),
    _NETWORKING.counted("ingresses", "Ingress", "ing", subresources=_STATUS),
    _NETWORKING.counted("networkpolicies", "NetworkPolicy", "netpol"),
    _RBAC.of("clusterrolebindings", "ClusterRoleBinding", in_cluster=True),
    _RBAC.of("clusterroles", "ClusterRole", in_cluster=True),
    _RBAC.of("rolebindings", "RoleBinding"),
    _RBAC.of("roles", "Role"),
    *_resource(_Family("resource.k8s.io")),
    *_storage(_Family("storage.k8s.io")),
    *_others(),
]
"""Every built-in resource."""
