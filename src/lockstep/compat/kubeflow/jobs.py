"""What the kinds of Kubeflow's jobs have in common: roles, run policies, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.wire import Json
from lockstep.compat import native
from lockstep.compat.admission import dns_label
from lockstep.compat.kubeflow.objects import ReplicaSpec, RunPolicy
from lockstep.compat.pods import queue_of, template
from lockstep.compat.translation import Refused

PREFIX: Final = "training.kubeflow.org/"
MANAGERS: Final = ("", "kubeflow.org/training-operator", "kubeflow.org/mpi-operator")
"""Who may serve a job by ``runPolicy.managedBy`` for it to be ours."""


def role(
    obj: AnyObject, kind: str, type_: str, spec: ReplicaSpec, at: str, *, leads: bool, main: str
) -> Json:
    """Return the role of the replicas *type_*; *leads*: its first pod is the job's master."""
    low = type_.lower()
    dns_label(obj.metadata.name, "metadata.name")
    _pictured(spec, at)
    labels = {
        f"{PREFIX}job-name": obj.metadata.name,
        f"{PREFIX}operator-name": f"{kind.lower()}-controller",
        f"{PREFIX}replica-type": low,
        f"{PREFIX}replica-index": "{index}",
    }
    if leads:
        labels[f"{PREFIX}job-role"] = "master"
    return {
        "name": low,
        "replicas": spec.replicas,
        "template": template(spec.template, f"{at}.template", main=main),
        "identity": {"labels": labels},
    }


def _pictured(spec: ReplicaSpec, at: str) -> None:
    """Refuse containers without an image, as training-operator's webhook does."""
    containers = (spec.template.get("spec") or {}).get("containers") or ()
    for i, container in enumerate(containers):
        if isinstance(container, dict) and not container.get("image"):
            field = f"{at}.template.spec.containers[{i}].image"
            raise Refused(field, None, "name the image of the container")


def job(
    obj: AnyObject, framework: str, roles: Sequence[Json], policy: RunPolicy, restarts: int
) -> Json:
    """Return the TrainingJob with *roles* under the run policy *policy*.

    Raises:
        Refused: when the policy asks for more pods at least than there are.
    """
    scheduling = policy.scheduling_policy
    meta = obj.metadata
    queue, priority = queue_of(meta.labels, meta.namespace), ""
    if scheduling is not None:
        queue, priority = queue or scheduling.queue, scheduling.priority_class
        total = sum(one["replicas"] for one in roles)
        if scheduling.min_available is not None and scheduling.min_available > total:
            raise Refused(
                "spec.runPolicy.schedulingPolicy.minAvailable",
                scheduling.min_available,
                f"must be at most {total}, the job's pods",
            )
    return native.training_job(
        obj,
        framework,
        roles,
        restarts=restarts,
        clean=policy.clean_pod_policy or "None",
        queue=queue,
        priorityClassName=priority,
        suspend=policy.suspend,
        deadline=policy.active_deadline_seconds,
    )


def restarts(replicas: Mapping[str, ReplicaSpec], policy: RunPolicy) -> int:
    """Return how often the job may start again."""
    if all(spec.restart_policy == "Never" for spec in replicas.values()):
        return 0
    return native.UNLIMITED if policy.backoff_limit is None else policy.backoff_limit


def rules(job: Json, replicas: Mapping[str, ReplicaSpec]) -> None:
    """Let *job* fail with replicas that are never started again, and of permanent exit codes.

    ``ExitCode`` takes those from 1 to 127 for permanent.
    """
    found: list[Json] = []
    for policy, codes in (("Never", []), ("ExitCode", ["1-127"])):
        roles = [t.lower() for t, spec in replicas.items() if spec.restart_policy == policy]
        if roles and not (policy == "Never" and len(roles) == len(replicas)):
            found.append({"action": "Fail", "roles": roles, "exitCodes": codes})
    if found:
        job["spec"]["recovery"]["rules"] = [
            {key: value for key, value in rule.items() if value} for rule in found
        ]


def set_port(roles: Sequence[Json], port: str) -> None:
    """Let the pods of *roles* meet at *port*."""
    own = {"name": "MASTER_PORT", "value": port}
    for role_ in roles:
        container = role_["template"]["spec"]["containers"][0]
        kept = [v for v in container.get("env") or [] if v.get("name") != "MASTER_PORT"]
        container["env"] = [*kept, own]


def manager(obj: AnyObject) -> str:
    """Return who is to serve *obj*; empty where it does not say or names the usual operator."""
    policy = obj.spec.get("runPolicy")
    named = policy.get("managedBy") if isinstance(policy, dict) else ""
    return "" if named in MANAGERS or not isinstance(named, str) else named
