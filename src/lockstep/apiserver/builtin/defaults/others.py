"""Defaults of the remaining kinds."""

from __future__ import annotations

import base64
from typing import Any

from lockstep.apiserver.autoscaling import DEFAULT_USE

Json = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"


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


def persistent_volume(obj: Json) -> None:
    """Fill in what becomes of a volume that is released."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def date_phase(obj: Json) -> None:
    """Say since when a new volume is pending."""
    obj["status"]["lastPhaseTransitionTime"] = obj["metadata"].get("creationTimestamp")


def claim(obj: Json) -> None:
    """Let a claim be pending."""
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def claim_spec(obj: Json) -> None:
    """Let a claim ask for a file system."""
    obj.setdefault("volumeMode", "Filesystem")


def limit_range_item(obj: Json) -> None:
    """Let the limits of containers follow from what else is said."""
    if obj.get("type") != "Container":
        return
    default = obj["default"] = {**(obj.get("max") or {}), **(obj.get("default") or {})}
    requests = {**(obj.get("min") or {}), **default, **(obj.get("defaultRequest") or {})}
    obj["defaultRequest"] = requests


def role_binding(obj: Json) -> None:
    """Say which group roles and people are of."""
    role = obj.setdefault("roleRef", {})
    if not role.get("apiGroup"):
        role["apiGroup"] = _RBAC


def subject(obj: Json) -> None:
    """Say which group users and groups are of."""
    if not obj.get("apiGroup") and obj.get("kind") in ("User", "Group"):
        obj["apiGroup"] = _RBAC


def priority_class(obj: Json) -> None:
    """Let a priority class preempt."""
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def storage_class(obj: Json) -> None:
    """Fill in when a volume is made and what becomes of it."""
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def csi_driver(obj: Json) -> None:
    """Fill in how a driver is asked to attach and mount."""
    spec = obj.setdefault("spec", {})
    for name, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("volumeLifecycleModes", ["Persistent"]),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(name, value)


def autoscaler(obj: Json) -> None:
    """Let an autoscaler keep one replica and look at the CPU."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_USE}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def old_autoscaler(obj: Json) -> None:
    """Let an autoscaler of the older version keep one replica."""
    obj.setdefault("spec", {}).setdefault("minReplicas", 1)


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


def webhook(obj: Json) -> None:
    """Fill in whom a webhook concerns and how long it may take."""
    obj.setdefault("failurePolicy", "Fail")
    matched(obj)
    obj.setdefault("timeoutSeconds", 10)


def mutating_webhook(obj: Json) -> None:
    """Fill in a webhook that changes objects."""
    webhook(obj)
    obj.setdefault("reinvocationPolicy", "Never")


def matched(obj: Json) -> None:
    """Let a rule match everything."""
    obj.setdefault("matchPolicy", "Equivalent")
    obj.setdefault("namespaceSelector", {})
    obj.setdefault("objectSelector", {})


def admission_rule(obj: Json) -> None:
    """Let a rule be about objects of any scope."""
    obj.setdefault("scope", "*")


def admission_policy(obj: Json) -> None:
    """Let a policy that fails refuse."""
    obj.setdefault("failurePolicy", "Fail")


def service_reference(obj: Json) -> None:
    """Let a service be reached at the port of HTTPS."""
    obj.setdefault("port", 443)


_ADMISSION = "admissionregistration.v1"
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

FILLS = {
    "core.v1.Secret": secret,
    "core.v1.Namespace": namespace,
    "core.v1.NodeStatus": node_status,
    "core.v1.PersistentVolume": persistent_volume,
    "core.v1.PersistentVolumeClaim": claim,
    "core.v1.PersistentVolumeClaimSpec": claim_spec,
    "core.v1.LimitRangeItem": limit_range_item,
    "rbac.v1.RoleBinding": role_binding,
    "rbac.v1.ClusterRoleBinding": role_binding,
    "rbac.v1.Subject": subject,
    "scheduling.v1.PriorityClass": priority_class,
    "storage.v1.StorageClass": storage_class,
    "storage.v1.CSIDriver": csi_driver,
    "autoscaling.v1.HorizontalPodAutoscaler": old_autoscaler,
    "autoscaling.v2.HorizontalPodAutoscaler": autoscaler,
    "resource.v1.ExactDeviceRequest": device_request,
    "resource.v1.DeviceSubRequest": device_request,
    f"{_ADMISSION}.ValidatingWebhook": webhook,
    f"{_ADMISSION}.MutatingWebhook": mutating_webhook,
    f"{_ADMISSION}.RuleWithOperations": admission_rule,
    f"{_ADMISSION}.NamedRuleWithOperations": admission_rule,
    f"{_ADMISSION}.MatchResources": matched,
    f"{_ADMISSION}.ValidatingAdmissionPolicySpec": admission_policy,
    f"{_ADMISSION}.MutatingAdmissionPolicySpec": admission_policy,
    f"{_ADMISSION}.ServiceReference": service_reference,
    f"{_CRD}.CustomResourceDefinition": custom_resource_definition,
    f"{_CRD}.ServiceReference": service_reference,
}
