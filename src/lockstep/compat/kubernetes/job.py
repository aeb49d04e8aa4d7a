"""Kubernetes' own jobs: pods that are alike and run side by side."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.kubernetes.objects import JobSpec
from lockstep.compat.pods import queue_of, template
from lockstep.compat.translation import Refused, Translation, read

PREFIX: Final = "batch.kubernetes.io/"
USUAL_BACKOFF: Final = 6
"""Failures of pods that a Job bears unless it says otherwise."""
ROLE: Final = "pods"
CONTROLLER: Final = "kubernetes.io/job-controller"
LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_BY_INDEX: Final = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")


def to_native(obj: AnyObject) -> Translation:
    """Return *obj* as a TrainingJob.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, JobSpec)
    meta = obj.metadata
    indexed = spec.completion_mode == "Indexed"
    pods: Json = {
        "name": ROLE,
        "replicas": side_by_side(spec, "spec"),
        "template": template(spec.template, "spec.template"),
        "identity": {
            "name": "{job}-{index}",
            "labels": {
                f"{PREFIX}job-name": meta.name,
                "job-name": meta.name,
                **({f"{PREFIX}controller-uid": meta.uid} if meta.uid else {}),
                **({f"{PREFIX}job-completion-index": "{index}"} if indexed else {}),
            },
            **(completion("{index}") if indexed else {}),
        },
    }
    if LEAST in meta.annotations:
        pods |= _part(meta.annotations[LEAST], pods["replicas"])
    job = native.training_job(
        obj,
        "plain",
        [pods],
        restarts=USUAL_BACKOFF if spec.backoff_limit is None else spec.backoff_limit,
        clean="Running",
        queue=queue_of(meta.labels, meta.namespace),
        rules=failure_rules(spec, "spec"),
        suspend=spec.suspend,
        deadline=spec.active_deadline_seconds,
    )
    return Translation((job,), expires_after=spec.ttl_seconds_after_finished)


def _part(given: str, replicas: int) -> Json:
    """Return the fewest pods with which a job may start, as Kueue admits a part of them."""
    if not given.isdecimal() or not 0 < int(given) <= replicas:
        allowed = f"must be a whole number from 1 to {replicas}, its pods"
        raise Refused(f"metadata.annotations[{LEAST}]", given, allowed)
    return {"min": int(given)} if int(given) < replicas else {}


_ACTIONS: Final = {"FailJob": "Fail", "Ignore": "RestartUncounted", "Count": "Restart"}
_HIGHEST: Final = 255


def failure_rules(spec: JobSpec, at: str) -> list[Json]:
    """Return the rules of a ``podFailurePolicy`` as ours.

    What the cluster takes away never counts, so that rules which ignore its conditions are met.

    Raises:
        Refused: for a rule that lets the job fail of what the cluster takes away.
    """
    found: list[Json] = []
    for i, rule in enumerate(spec.pod_failure_policy.rules if spec.pod_failure_policy else ()):
        if rule.on_exit_codes is None:
            if rule.action != "Ignore":
                where = f"{at}.podFailurePolicy.rules[{i}].action"
                raise Refused(where, rule.action, "must be Ignore for conditions of pods")
            continue
        codes = sorted(set(rule.on_exit_codes.values))
        spans = [str(code) for code in codes]
        if rule.on_exit_codes.operator == "NotIn":
            ends = [0, *codes, _HIGHEST + 1]
            spans = [f"{low + 1}-{high - 1}" for low, high in pairwise(ends) if high - low > 1]
        found.append({"action": _ACTIONS[rule.action], "exitCodes": spans})
    return found


def side_by_side(spec: JobSpec, at: str) -> int:
    """Return how many pods run side by side.

    Raises:
        Refused: when pods would have to follow one another.
    """
    parallel = 1 if spec.parallelism is None else spec.parallelism
    wanted = spec.completions
    if wanted is not None and wanted > parallel:
        raise Refused(
            f"{at}.completions",
            wanted,
            f"must be at most parallelism, {parallel}: all pods of a job run side by side",
        )
    return parallel if wanted is None else wanted


def completion(pattern: str) -> Json:
    """Return what tells a pod its index, which *pattern* stands for."""
    return {
        "annotations": {f"{PREFIX}job-completion-index": pattern},
        "env": {"JOB_COMPLETION_INDEX": pattern},
    }


def manager(obj: AnyObject) -> str:
    """Return who is to serve *obj*; empty where it does not say."""
    named = obj.spec.get("managedBy")
    if not isinstance(named, str) or named in ("", CONTROLLER):
        return CONTROLLER if in_turn(obj) else ""
    return named


def in_turn(obj: AnyObject) -> bool:
    """Say whether the pods of the Job *obj* follow one another, so that they are no gang.

    A Job that names a queue, or its manager, is a gang or refused.
    """
    spec = obj.spec
    if queue_of(obj.metadata.labels, obj.metadata.namespace):
        return False
    if spec.get("managedBy") not in (None, "", CONTROLLER):
        return False
    if any(spec.get(name) is not None for name in _BY_INDEX) or spec.get("parallelism") == 0:
        return True
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    if any(rule.get("onPodConditions") and rule.get("action") != "Ignore" for rule in rules):
        return True
    wanted = spec.get("completions")
    return wanted is not None and int(wanted) > int(spec.get("parallelism", 1))
