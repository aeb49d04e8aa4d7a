"""What the kinds that make pods may look like, and what of them may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lockstep.api.wire import Json
from lockstep.apiserver.builtin.rules.amounts import NOT_NEGATIVE
from lockstep.apiserver.builtin.rules.metadata import immutable
from lockstep.apiserver.builtin.rules.names import dns_label, one_of, problems
from lockstep.apiserver.builtin.rules.pods import template
from lockstep.apiserver.builtin.rules.selectors import (
    required_selector,
    restart_policy,
    selector,
    selects_template,
)
from lockstep.apiserver.builtin.rules.statuses import replicas
from lockstep.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

_STATEFUL_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_JOB_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_JOB_FIXED = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)

# Of daemon sets Kubernetes says only that nothing matches the template.
_NO_SELECTOR = required("spec.selector")


def _spec(obj: Json | None) -> Json:
    return (obj or {}).get("spec") or {}


def not_negative(spec: Json, names: tuple[str, ...], path: str) -> list[Cause]:
    """Return which of the numbers called *names* are below zero."""
    return [
        invalid(f"{path}.{name}", spec[name], NOT_NEGATIVE)
        for name in names
        if (spec.get(name) or 0) < 0
    ]


def deployment(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a deployment."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        yield from replicas(new, old)
        return
    counts = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from required_selector(spec, "deployment", "spec")
    yield from template(spec.get("template"), "spec.template")
    yield from restart_policy(spec, "ReplicaSet", "spec")
    yield from _strategy(spec)
    yield from not_negative(spec, counts, "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        text = "must be greater than minReadySeconds"
        yield invalid("spec.progressDeadlineSeconds", deadline, text)
    yield from _fixed_selector(spec, old)


def _strategy(spec: Json) -> list[Cause]:
    strategy = spec.get("strategy") or {}
    sort, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if sort == "Recreate":
        text = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden("spec.strategy.rollingUpdate", text)]
    if sort != "RollingUpdate":
        return [not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))]
    path = "spec.strategy.rollingUpdate"
    causes = [
        cause
        for name in ("maxUnavailable", "maxSurge")
        for cause in count_or_percent((rolling or {}).get(name, 0), f"{path}.{name}")
    ]
    is_zero = [(rolling or {}).get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")]
    if all(is_zero):
        text = "may not be 0 when `maxSurge` is 0"
        causes.append(invalid(f"{path}.maxUnavailable", (rolling or {})["maxUnavailable"], text))
    return causes


def count_or_percent(value: Any, path: str) -> list[Cause]:
    """Return what is wrong with a number or a percentage."""
    if isinstance(value, str):
        if re.fullmatch("[0-9]+%", value):
            too_much = int(value[:-1]) > 100 and path.endswith("navailable")
            return [invalid(path, value, "must not be greater than 100%")] if too_much else []
        text = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',"
            "  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [invalid(path, value, text)]
    return [] if value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def _fixed_selector(spec: Json, old: Json | None) -> list[Cause]:
    if old is None:
        return []
    return immutable(spec.get("selector"), _spec(old).get("selector"), "spec.selector")


def replica_set(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a replica set."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return []
    return [
        *not_negative(spec, ("replicas", "minReadySeconds"), "spec"),
        *required_selector(spec, "deployment", "spec"),
        *template(spec.get("template"), "spec.template"),
        *restart_policy(spec, "ReplicaSet", "spec"),
        *_fixed_selector(spec, old),
    ]


def replication_controller(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a replication controller."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return
    yield from not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    wanted, given = spec.get("selector") or {}, spec.get("template")
    if not wanted:
        yield required("spec.selector")
    if given is None:
        yield required("spec.template")
        return
    found = (given.get("metadata") or {}).get("labels") or {}
    if any(found.get(key) != value for key, value in wanted.items()):
        text = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", found or None, text)
    yield from template(given, "spec.template")
    yield from restart_policy(spec, "ReplicationController", "spec")


def daemon_set(new: Json, old: Json | None) -> list[Cause]:
    """Return what is wrong with a daemon set."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return []
    return [
        *[c for c in required_selector(spec, "daemonset", "spec") if c != _NO_SELECTOR],
        *template(spec.get("template"), "spec.template"),
        *restart_policy(spec, "DaemonSet", "spec"),
        *not_negative(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec"),
        *_fixed_selector(spec, old),
    ]


def stateful_set(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a stateful set."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return
    yield from not_negative(spec, ("replicas", "minReadySeconds"), "spec")
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        text = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", policy, text)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        text = "must be 'RollingUpdate' or 'OnDelete'"
        yield invalid("spec.updateStrategy", strategy, text)
    service = spec.get("serviceName")
    if service and old is None:
        yield from problems("spec.serviceName", service, dns_label)
    yield from required_selector(spec, "statefulset", "spec")
    yield from template(_with_claims(spec), "spec.template")
    yield from restart_policy(spec, "StatefulSet", "spec")
    changed = _beyond(spec, _spec(old)) if old is not None else False
    if changed:
        listed = ", ".join(f"'{name}'" for name in _STATEFUL_CHANGEABLE[:-1])
        text = (
            f"updates to statefulset spec for fields other than {listed} and "
            "'minReadySeconds' are forbidden"
        )
        yield forbidden("spec", text)


def _with_claims(spec: Json) -> Json:
    """Return the template as its pods see it: with a volume for every claim template."""
    given = spec.get("template") or {}
    inner = given.get("spec") or {}
    names = [(c.get("metadata") or {}).get("name") for c in spec.get("volumeClaimTemplates") or ()]
    added = [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names if n]
    kept = [v for v in inner.get("volumes") or () if v.get("name") not in names]
    return {**given, "spec": {**inner, "volumes": [*added, *kept]}}


def _beyond(new: Json, old: Json) -> bool:
    fixed = (new.keys() | old.keys()) - set(_STATEFUL_CHANGEABLE)
    return any(new.get(name) != old.get(name) for name in fixed)


def job(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a job."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return
    yield from job_spec(spec, "spec")
    if spec.get("selector") is None:
        yield required("spec.selector")
    yield from selector(spec.get("selector"), "spec.selector")
    yield from selects_template(spec, "spec")
    if old is not None:
        yield from _job_change(spec, _spec(old))


def job_spec(spec: Json, path: str) -> Iterator[Cause]:
    """Return what is wrong with the specification of a job, except for its selector."""
    yield from not_negative(spec, _JOB_COUNTS, path)
    yield from template(spec.get("template"), f"{path}.template")
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        choices = ("NonIndexed", "Indexed")
        yield not_supported(f"{path}.completionMode", mode, choices)
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if mode == "NonIndexed":
        yield from (
            invalid(f"{path}.{name}", spec[name], "requires indexed completion mode")
            for name in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(name) is not None
        )
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        text = "when maxFailedIndexes is specified"
        yield required(f"{path}.backoffLimitPerIndex", text)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    at = f"{path}.template.spec.restartPolicy"
    if policy in ("Always", "", None):
        yield required(at, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(at, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        text = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(at, policy, text)


def _job_change(new: Json, old: Json) -> Iterator[Cause]:
    yield from (
        cause
        for name in _JOB_FIXED
        for cause in immutable(new.get(name), old.get(name), f"spec.{name}")
    )
    indexed = new.get("completionMode") == "Indexed"
    if not indexed or new.get("completions") != new.get("parallelism"):
        yield from immutable(new.get("completions"), old.get("completions"), "spec.completions")
    if not old.get("suspend"):
        yield from immutable(new.get("template"), old.get("template"), "spec.template")


def cron_job(new: Json, old: Json | None) -> Iterator[Cause]:
    """Return what is wrong with a cron job."""
    spec = _spec(new)
    if old is not None and spec == _spec(old):
        return
    name = (new.get("metadata") or {}).get("name") or ""
    if old is None and len(name) > 52:
        yield invalid("metadata.name", name, "must be no more than 52 characters")
    schedule = spec.get("schedule")
    if not schedule:
        yield required("spec.schedule")
    elif "TZ" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, text)
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        parts = schedule.split()
        text = f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]"
        yield invalid("spec.schedule", schedule, text)
    policy, choices = spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace")
    yield from one_of("spec.concurrencyPolicy", policy, choices)
    counts = (
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    )
    inner = _spec(spec.get("jobTemplate"))
    yield from not_negative(spec, counts, "spec")
    yield from job_spec(inner, "spec.jobTemplate.spec")


RULES = {
    "Deployment": deployment,
    "ReplicaSet": replica_set,
    "ReplicationController": replication_controller,
    "DaemonSet": daemon_set,
    "StatefulSet": stateful_set,
    "Job": job,
    "CronJob": cron_job,
}
