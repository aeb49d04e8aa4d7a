"""Defaults of the kinds that make pods."""

from __future__ import annotations

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.defaults.values import values

_INT32_MAX = 2**31 - 1
_DEPLOYMENT = values(
    {"spec.replicas": 1, "spec.revisionHistoryLimit": 10, "spec.progressDeadlineSeconds": 600},
    {"spec.strategy.type": "RollingUpdate"},
)
_ROLLING_QUARTER = values(
    {
        "spec.strategy.rollingUpdate.maxUnavailable": "25%",
        "spec.strategy.rollingUpdate.maxSurge": "25%",
    }
)
_DAEMON_SET = values(
    {"spec.revisionHistoryLimit": 10}, {"spec.updateStrategy.type": "RollingUpdate"}
)
_ROLLING_ONE = values(
    {
        "spec.updateStrategy.rollingUpdate.maxUnavailable": 1,
        "spec.updateStrategy.rollingUpdate.maxSurge": 0,
    }
)
_STATEFUL_SET = values(
    {
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
        "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
        "spec.serviceName": "",
        "spec.replicas": 1,
        "spec.revisionHistoryLimit": 10,
    },
    {"spec.podManagementPolicy": "OrderedReady"},
)
_JOB = values(
    {
        "spec.parallelism": 1,
        "spec.completionMode": "NonIndexed",
        "spec.suspend": False,
        "spec.manualSelector": False,
    }
)
_CRON_JOB = values(
    {
        "spec.suspend": False,
        "spec.successfulJobsHistoryLimit": 3,
        "spec.failedJobsHistoryLimit": 1,
    },
    {"spec.concurrencyPolicy": "Allow"},
)
TEMPLATE_COUNT = "deprecated.daemonset.template.generation"
"""The annotation that counts the versions of a daemon set's template."""


def deployment(obj: Json) -> None:
    """Fill in how a deployment rolls."""
    _DEPLOYMENT(obj)
    if obj["spec"]["strategy"]["type"] == "RollingUpdate":
        _ROLLING_QUARTER(obj)


def daemon_set(obj: Json) -> None:
    """Fill in how a daemon set rolls."""
    _DAEMON_SET(obj)
    if obj["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        _ROLLING_ONE(obj)


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
    _STATEFUL_SET(obj)
    spec = obj["spec"]
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
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
    _JOB(obj)
    spec.setdefault("backoffLimit", _INT32_MAX if "backoffLimitPerIndex" in spec else 6)
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replacement)
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
    "apps.v1.ReplicaSet": values({"spec.replicas": 1}),
    "apps.v1.DaemonSet": daemon_set,
    "apps.v1.StatefulSet": stateful_set,
    "core.v1.ReplicationController": replication_controller,
    "batch.v1.Job": job,
    "batch.v1.CronJob": _CRON_JOB,
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": values({}, {"status": "True"}),
}
