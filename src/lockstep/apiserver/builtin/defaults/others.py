"""Defaults of the remaining kinds."""

from __future__ import annotations

import base64

from lockstep.api.wire import Json
from lockstep.apiserver.autoscaling import DEFAULT_USE
from lockstep.apiserver.builtin.defaults.values import values

_RBAC = "rbac.authorization.k8s.io"
_ONE_REPLICA = values({"spec.minReplicas": 1})
_BINDING = values({}, {"roleRef.apiGroup": _RBAC})
_MATCHED = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK = {"failurePolicy": "Fail", **_MATCHED, "timeoutSeconds": 10}
_REFUSES = values({"failurePolicy": "Fail"})
_HTTPS = values({"port": 443})
_DRIVER = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "volumeLifecycleModes": ["Persistent"],
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def secret(obj: Json) -> None:
    """Make a secret opaque, and move its plain texts among its data."""
    if not obj.get("type"):
        obj["type"] = "Opaque"
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def namespace(obj: Json) -> None:
    """Label a namespace with its name and let it be active."""
    meta = obj.setdefault("metadata", {})
    if meta.get("name"):
        meta["labels"] = {
            **(meta.get("labels") or {}),
            "kubernetes.io/metadata.name": meta["name"],
        }
    obj.setdefault("status", {}).setdefault("phase", "Active")


def hold_until_empty(obj: Json) -> None:
    """Give a new namespace the finalizer that keeps it until it is empty."""
    spec = obj.setdefault("spec", {})
    finalizers = spec.setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def node_status(obj: Json) -> None:
    """Let all of a node's capacity be allocatable."""
    if "capacity" in obj and "allocatable" not in obj:
        obj["allocatable"] = dict(obj["capacity"])


def date_phase(obj: Json) -> None:
    """Say since when a new volume is pending."""
    obj["status"]["lastPhaseTransitionTime"] = obj["metadata"].get("creationTimestamp")


def limit_range_item(obj: Json) -> None:
    """Let the limits of containers follow from what else is said."""
    if obj.get("type") != "Container":
        return
    default = obj["default"] = {**(obj.get("max") or {}), **(obj.get("default") or {})}
    requests = {**(obj.get("min") or {}), **default, **(obj.get("defaultRequest") or {})}
    obj["defaultRequest"] = requests


def subject(obj: Json) -> None:
    """Say which group users and groups are of."""
    if not obj.get("apiGroup") and obj.get("kind") in ("User", "Group"):
        obj["apiGroup"] = _RBAC


def autoscaler(obj: Json) -> None:
    """Let an autoscaler keep one replica and look at the CPU."""
    _ONE_REPLICA(obj)
    spec = obj["spec"]
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_USE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def device_request(obj: Json) -> None:
    """Let a request mean one device."""
    if not obj.get("allocationMode"):
        obj["allocationMode"] = "ExactCount"
    if obj["allocationMode"] == "ExactCount" and not obj.get("count"):
        obj["count"] = 1


def custom_resource_definition(obj: Json) -> None:
    """Fill in the names that follow from others."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})


_ADMISSION = "admissionregistration.v1"
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

FILLS = {
    "core.v1.Secret": secret,
    "core.v1.Namespace": namespace,
    "core.v1.NodeStatus": node_status,
    "core.v1.PersistentVolume": values(
        {
            "spec.persistentVolumeReclaimPolicy": "Retain",
            "spec.volumeMode": "Filesystem",
            "status.phase": "Pending",
        }
    ),
    "core.v1.PersistentVolumeClaim": values({"status.phase": "Pending"}),
    "core.v1.PersistentVolumeClaimSpec": values({"volumeMode": "Filesystem"}),
    "core.v1.LimitRangeItem": limit_range_item,
    "rbac.v1.RoleBinding": _BINDING,
    "rbac.v1.ClusterRoleBinding": _BINDING,
    "rbac.v1.Subject": subject,
    "scheduling.v1.PriorityClass": values({"preemptionPolicy": "PreemptLowerPriority"}),
    "storage.v1.StorageClass": values(
        {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    ),
    "storage.v1.CSIDriver": values({f"spec.{name}": value for name, value in _DRIVER.items()}),
    "autoscaling.v1.HorizontalPodAutoscaler": _ONE_REPLICA,
    "autoscaling.v2.HorizontalPodAutoscaler": autoscaler,
    "resource.v1.ExactDeviceRequest": device_request,
    "resource.v1.DeviceSubRequest": device_request,
    f"{_ADMISSION}.ValidatingWebhook": values(_WEBHOOK),
    f"{_ADMISSION}.MutatingWebhook": values({**_WEBHOOK, "reinvocationPolicy": "Never"}),
    f"{_ADMISSION}.RuleWithOperations": values({"scope": "*"}),
    f"{_ADMISSION}.NamedRuleWithOperations": values({"scope": "*"}),
    f"{_ADMISSION}.MatchResources": values(_MATCHED),
    f"{_ADMISSION}.ValidatingAdmissionPolicySpec": _REFUSES,
    f"{_ADMISSION}.MutatingAdmissionPolicySpec": _REFUSES,
    f"{_ADMISSION}.ServiceReference": _HTTPS,
    f"{_CRD}.CustomResourceDefinition": custom_resource_definition,
    f"{_CRD}.ServiceReference": _HTTPS,
}
