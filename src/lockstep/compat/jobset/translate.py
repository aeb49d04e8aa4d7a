"""JobSets: replicated jobs whose pods are numbered by job and by place in it."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.admission import different, dns_label
from lockstep.compat.jobset.claims import claims
from lockstep.compat.jobset.objects import JobSetSpec, ReplicatedJob
from lockstep.compat.kubernetes.job import PREFIX as BATCH
from lockstep.compat.kubernetes.job import USUAL_BACKOFF, completion, side_by_side
from lockstep.compat.kubernetes.objects import JobSpec
from lockstep.compat.pods import queue_of, template
from lockstep.compat.translation import Refused, Translation, read

PREFIX: Final = "jobset.sigs.k8s.io/"
MANAGER: Final = "jobset.sigs.k8s.io/jobset-controller"
EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"


_REASONS: Final = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a job may have failed in a rule."""
_RULE: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_RULE_NAME: Final = 128
_ACTIONS: Final = {
    "FailJobSet": "Fail",
    "RestartJobSet": "Restart",
    "RestartJobSetAndIgnoreMaxRestarts": "RestartUncounted",
}


def to_native(obj: AnyObject) -> Translation:
    """Return *obj* as a TrainingJob.

    Raises:
        Refused: when something in it cannot be honoured.
    """
    spec = read(obj.spec, JobSetSpec)
    _checked(obj, spec)
    _named(obj, spec)
    names = [one.name for one in spec.replicated_jobs]
    policy = spec.failure_policy
    in_place = policy is not None and policy.restart_strategy == "InPlaceRestart"
    jobs = [
        _job(one, f"spec.replicatedJobs[{i}]", in_place=in_place)
        for i, one in enumerate(spec.replicated_jobs)
    ]
    roles = [_role(obj, spec, i, job) for i, job in enumerate(jobs)]
    if (service := _subdomain(obj, spec)) != obj.metadata.name:
        for role in roles:
            role["template"]["spec"]["subdomain"] = service
    brought = claims(obj, spec.volume_claim_policies, roles)
    _order(spec, roles, names)
    _coordinator(obj, spec, roles, dict(zip(names, jobs, strict=True)))
    made = native.training_job(
        obj,
        "plain",
        roles,
        restarts=_restarts(spec, jobs),
        rules=_rules(spec, names),
        clean="Running",
        queue=queue_of(obj.metadata.labels, obj.metadata.namespace),
        suspend=spec.suspend,
        successPolicy=_success(spec, names),
    )
    return Translation((made, *brought), expires_after=spec.ttl_seconds_after_finished)


def _checked(obj: AnyObject, spec: JobSetSpec) -> None:
    if spec.network is not None and spec.network.subdomain:
        dns_label(spec.network.subdomain, "spec.network.subdomain")
    if EXCLUSIVE in obj.metadata.annotations:
        given = obj.metadata.annotations[EXCLUSIVE]
        raise Refused(f"metadata.annotations[{EXCLUSIVE}]", given, "it is not served; leave it out")


def _subdomain(obj: AnyObject, spec: JobSetSpec) -> str:
    return (spec.network.subdomain if spec.network else "") or obj.metadata.name


def _named(obj: AnyObject, spec: JobSetSpec) -> None:
    """Refuse names that JobSet's webhook denies."""
    jobs = spec.replicated_jobs
    different(
        ((f"spec.replicatedJobs[{i}].name", one.name) for i, one in enumerate(jobs)),
        "the name of a replicated job",
    )
    for i, one in enumerate(jobs):
        at = f"spec.replicatedJobs[{i}]"
        dns_label(one.group_name, f"{at}.groupName")
        child = f"{obj.metadata.name}-{one.name}-{one.replicas - 1}"
        dns_label(child, f"{at}.name", of="a job")
        last = (one.template.get("spec") or {}).get("completions")
        if isinstance(last, int):
            dns_label(f"{child}-{last - 1}-abcde", f"{at}.name", of="a pod")
    rules = spec.failure_policy.rules if spec.failure_policy else []
    at = "spec.failurePolicy.rules"
    named = [rule.name or f"failurePolicyRule{i}" for i, rule in enumerate(rules)]
    different(((f"{at}[{i}].name", name) for i, name in enumerate(named)), "the name of a rule")
    for i, rule in enumerate(rules):
        if len(named[i]) > _RULE_NAME or not _RULE.fullmatch(named[i]):
            allowed = "must be a letter and at most 127 of A-Z, a-z, 0-9, _, comma and colon"
            raise Refused(f"{at}[{i}].name", named[i], allowed)
        for reason in rule.on_job_failure_reasons:
            if reason not in _REASONS:
                allowed = f"must be of: {', '.join(_REASONS)}"
                raise Refused(f"{at}[{i}].onJobFailureReasons", reason, allowed)


def _job(one: ReplicatedJob, at: str, *, in_place: bool) -> JobSpec:
    notes = (one.template.get("metadata") or {}).get("annotations") or {}
    if EXCLUSIVE in notes:
        field = f"{at}.template.metadata.annotations[{EXCLUSIVE}]"
        raise Refused(field, notes[EXCLUSIVE], "it is not served; leave it out")
    at = f"{at}.template.spec"
    job = read(one.template.get("spec") or {}, JobSpec, at)
    if in_place:
        _restarts_in_place(job, at)
    for field, value in (
        ("activeDeadlineSeconds", job.active_deadline_seconds),
        ("ttlSecondsAfterFinished", job.ttl_seconds_after_finished),
    ):
        if value is not None:
            raise Refused(f"{at}.{field}", value, "say it of the JobSet, not of a job")
    return job


def _restarts_in_place(job: JobSpec, at: str) -> None:
    """Refuse a job of a set that restarts in place where JobSet's webhook denies it."""
    for field, value, wanted in (
        ("backoffLimit", job.backoff_limit, native.UNLIMITED),
        ("podReplacementPolicy", job.pod_replacement_policy, "Failed"),
        ("parallelism", job.parallelism, job.completions or "set, and equal to completions"),
    ):
        if value != wanted:
            raise Refused(f"{at}.{field}", value, f"must be {wanted} for InPlaceRestart")


def _role(obj: AnyObject, spec: JobSetSpec, i: int, job: JobSpec) -> Json:
    one, at = spec.replicated_jobs[i], f"spec.replicatedJobs[{i}]"
    name, pods = obj.metadata.name, side_by_side(job, f"{at}.template.spec")
    before = sum(each.replicas for each in spec.replicated_jobs[:i])
    told = {
        f"{PREFIX}jobset-name": name,
        f"{PREFIX}replicatedjob-name": one.name,
        f"{PREFIX}replicatedjob-replicas": str(one.replicas),
        f"{PREFIX}global-replicas": str(sum(each.replicas for each in spec.replicated_jobs)),
        f"{PREFIX}job-index": "{block}",
        f"{PREFIX}group-name": one.group_name,
        f"{PREFIX}restart-attempt": "0",
    }
    # A sum over two numbers is not in a pattern's words.
    if before == 0:
        told[f"{PREFIX}job-global-index"] = "{block}"
    elif one.replicas == 1:
        told[f"{PREFIX}job-global-index"] = str(before)
    if one.replicas == 1:
        key = f"{obj.metadata.namespace}/{name}-{one.name}-0"
        told[f"{PREFIX}job-key"] = hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()
    indexed = job.completion_mode != "NonIndexed"
    own = completion("{member}") if indexed else {}
    child = f"{name}-{one.name}-{{block}}"
    return {
        "name": one.name,
        "replicas": one.replicas * pods,
        "template": template(job.template, f"{at}.template.spec.template"),
        "identity": {
            "name": f"{{job}}-{one.name}-{{block}}-{{member}}",
            "block": pods,
            "labels": {
                **told,
                f"{BATCH}job-name": child,
                "job-name": child,
                **({f"{BATCH}job-completion-index": "{member}"} if indexed else {}),
            },
            **own,
            "annotations": {**told, **own.get("annotations", {})},
        },
    }


def _restarts(spec: JobSetSpec, jobs: list[JobSpec]) -> int:
    """Return how many failures of pods the set bears: those of a job in each of its lives."""
    limits = [USUAL_BACKOFF if j.backoff_limit is None else j.backoff_limit for j in jobs]
    lives = 1 + (spec.failure_policy.max_restarts if spec.failure_policy else 0)
    return lives * (min(limits) + 1) - 1


def _rules(spec: JobSetSpec, names: list[str]) -> list[Json]:
    """Return its rules about failures as ours; those about other ends of a job never apply."""
    found = []
    for i, rule in enumerate(spec.failure_policy.rules if spec.failure_policy else ()):
        at = f"spec.failurePolicy.rules[{i}].targetReplicatedJobs"
        for name in rule.target_replicated_jobs:
            if name not in names:
                raise Refused(at, name, f"must be of: {', '.join(names)}")
        reasons = rule.on_job_failure_reasons
        if reasons and "BackoffLimitExceeded" not in reasons:
            continue
        made: Json = {"action": _ACTIONS[rule.action]}
        if rule.target_replicated_jobs:
            made["roles"] = rule.target_replicated_jobs
        found.append(made)
    return found


def _order(spec: JobSetSpec, roles: list[Json], names: list[str]) -> None:
    """Say which roles go before which."""
    in_order = (
        spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder"
    )
    for i, (one, role) in enumerate(zip(spec.replicated_jobs, roles, strict=True)):
        at = f"spec.replicatedJobs[{i}].dependsOn"
        if in_order and one.depends_on:
            raise Refused(at, one.depends_on[0].name, "cannot be combined with startupPolicy")
        for before in one.depends_on:
            if before.name not in names[:i]:
                told = ", ".join(names[:i]) or "none"
                raise Refused(at, before.name, f"must be a replicated job before it: {told}")
        after = [{"role": d.name, "condition": d.status} for d in one.depends_on]
        if in_order and i:
            after = [{"role": names[i - 1], "condition": "Ready"}]
        if after:
            role["after"] = after


def _coordinator(
    obj: AnyObject, spec: JobSetSpec, roles: list[Json], jobs: dict[str, JobSpec]
) -> None:
    """Tell all pods of the one that coordinates."""
    one = spec.coordinator
    if one is None:
        return
    job = jobs.get(one.replicated_job)
    if job is None:
        at = "spec.coordinator.replicatedJob"
        raise Refused(at, one.replicated_job, f"must be of: {', '.join(jobs)}")
    if job.completions is None or job.completion_mode == "NonIndexed":
        at = (
            f"spec.replicatedJobs[{list(jobs).index(one.replicated_job)}].template.spec.completions"
        )
        raise Refused(
            at, job.completions, "set it, and Indexed: the coordinator is one of its pods"
        )
    there = next(r.replicas for r in spec.replicated_jobs if r.name == one.replicated_job)
    for field, index, count in (
        ("jobIndex", one.job_index, there),
        ("podIndex", one.pod_index, job.completions),
    ):
        if index >= count:
            raise Refused(f"spec.coordinator.{field}", index, f"must be below {count}")
    name = obj.metadata.name
    host = f"{name}-{one.replicated_job}-{one.job_index}-{one.pod_index}.{_subdomain(obj, spec)}"
    for role in roles:
        for told in (role["identity"]["labels"], role["identity"]["annotations"]):
            told[f"{PREFIX}coordinator"] = host


def _success(spec: JobSetSpec, names: list[str]) -> Json | None:
    policy = spec.success_policy
    if policy is None or (policy.operator == "All" and not policy.target_replicated_jobs):
        return None
    for name in policy.target_replicated_jobs:
        if name not in names:
            at = "spec.successPolicy.targetReplicatedJobs"
            raise Refused(at, name, f"must be of: {', '.join(names)}")
    return {"roles": policy.target_replicated_jobs or names, "operator": policy.operator}
