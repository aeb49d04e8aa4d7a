"""Defaults of the kinds that make pods."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_INT32_MAX = 2**31 - 1
TEMPLATE_COUNT = "deprecated.daemonset.template.generation"
"""The annotation that counts the versions of a daemon set's template."""


def deployment(obj: Json) -> None:
    """Fill in how a deployment rolls."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def replica_set(obj: Json) -> None:
    """Fill in the number of replicas."""
    obj.setdefault("spec", {}).setdefault("replicas", 1)


def daemon_set(obj: Json) -> None:
    """Fill in how a daemon set rolls."""
    spec = obj.setdefault("spec", {})
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def number_template(obj: Json) -> None:
    """Count the versions of a new daemon set's template, as its oldest clients expect."""
    meta = obj.setdefault("metadata", {})
    count = {TEMPLATE_COUNT: "1"}
    meta["annotations"] = {**(meta.get("annotations") or {}), **count}


def renumber_template(new: Json, old: Json) -> None:
    """Count a change of a daemon set's template; the count is the server's to say."""
    before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_COUNT, "")
    count = int(before) if before.isdecimal() else 0
    if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        count += 1
    meta = new["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_COUNT: str(count)}


def stateful_set(obj: Json) -> None:
    """Fill in how a stateful set orders and keeps its pods."""
    spec = obj.setdefault("spec", {})
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("serviceName", "")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"


def replication_controller(obj: Json) -> None:
    """Take the selector and the labels from the template."""
    labels = _template_labels(obj)
    if labels and not (obj.get("spec") or {}).get("selector"):
        obj["spec"]["selector"] = dict(labels)
    _inherit_labels(obj, labels)


def job(obj: Json) -> None:
    """Fill in how often and how parallel a job runs."""
    spec = obj.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", _INT32_MAX if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replacement)
    spec.setdefault("manualSelector", False)
    _inherit_labels(obj, _template_labels(obj))


def select_own_pods(obj: Json) -> None:
    """Give a new job the labels and the selector that tell its pods from all others."""
    spec = obj.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    meta = obj["metadata"]
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template.setdefault("labels", {})
    for label in ("job-name", "batch.kubernetes.io/job-name"):
        labels.setdefault(label, meta.get("name", ""))
    uid = meta.get("uid", "")
    for label in ("controller-uid", "batch.kubernetes.io/controller-uid"):
        labels.setdefault(label, uid)
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault("batch.kubernetes.io/controller-uid", uid)
    _inherit_labels(obj, labels)


def pod_condition_pattern(obj: Json) -> None:
    """Let a pattern on a pod's condition mean that the condition holds."""
    if not obj.get("status"):
        obj["status"] = "True"


def cron_job(obj: Json) -> None:
    """Fill in how a cron job overlaps and how much history it keeps."""
    spec = obj.setdefault("spec", {})
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)


def _template_labels(obj: Json) -> Json:
    template = (obj.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _inherit_labels(obj: Json, labels: Json) -> None:
    meta = obj.setdefault("metadata", {})
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


FILLS = {
    "apps.v1.Deployment": deployment,
    "apps.v1.ReplicaSet": replica_set,
    "apps.v1.DaemonSet": daemon_set,
    "apps.v1.StatefulSet": stateful_set,
    "core.v1.ReplicationController": replication_controller,
    "batch.v1.Job": job,
    "batch.v1.CronJob": cron_job,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": pod_condition_pattern,
}
