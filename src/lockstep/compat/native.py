"""Training jobs of ours, as dialects make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lockstep.api.core import CLAIMS, CONFIG_MAPS, AnyObject
from lockstep.api.names import JOB_LABEL
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import Json
from lockstep.compat.pods import kai_queue
from lockstep.compat.translation import Native

UNLIMITED: Final = 2**31 - 1
"""Restarts of a job that starts again as often as it takes."""


def training_job(
    obj: AnyObject,
    framework: str,
    roles: Sequence[Json],
    *,
    restarts: int,
    clean: str,
    queue: str = "",
    rules: Sequence[Json] = (),
    **spec: Any,
) -> Json:
    """Return the TrainingJob made of *obj*; of *spec* what is None or empty is left out."""
    made: Json = {
        "framework": framework,
        "roles": list(roles),
        "launcher": "None",
        "recovery": {"maxRestarts": restarts} | ({"rules": list(rules)} if rules else {}),
        "runPolicy": {"cleanPods": clean},
        "suspend": bool(spec.pop("suspend", False)),
    }
    deadline = spec.pop("deadline", None)
    if deadline is not None:
        made["runPolicy"]["activeDeadline"] = f"{deadline}s"
    labels = ((role["template"].get("metadata") or {}).get("labels") or {} for role in roles)
    queue = queue or next(filter(None, map(kai_queue, labels)), "")
    if queue:
        made["queue"] = queue
    made |= {key: value for key, value in spec.items() if value not in (None, "", {}, [])}
    meta = obj.metadata
    return {
        "apiVersion": TRAINING_JOBS.api_version,
        "kind": TRAINING_JOBS.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace},
        "spec": made,
    }


def config_map(obj: AnyObject, name: str, data: dict[str, str]) -> Json:
    """Return a ConfigMap of the job made of *obj*."""
    meta = obj.metadata
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": {JOB_LABEL: meta.name},
        },
        "data": data,
    }


def claim(obj: AnyObject, name: str, spec: Json, *, stays: bool = False) -> Json:
    """Return the claim *name* of the job made of *obj*; it goes with *obj* unless it *stays*."""
    meta = obj.metadata
    about: Json = {"name": name, "namespace": meta.namespace, "labels": {JOB_LABEL: meta.name}}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": about | ({"ownerReferences": []} if stays else {}),
        "spec": spec,
    }


def mount(template: Json, volume: str, path: str, source: Json) -> None:
    """Mount the volume *source* at *path* in all containers of the pod *template*."""
    spec = template["spec"]
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": volume, **source}]
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        mounts = container.get("volumeMounts") or []
        container["volumeMounts"] = [*mounts, {"name": volume, "mountPath": path}]


def job_of(natives: Sequence[Native]) -> TrainingJob | None:
    """Return the training job among *natives*."""
    return next((one for one in natives if isinstance(one, TrainingJob)), None)


def pods_by_role(job: TrainingJob) -> dict[str, dict[str, int]]:
    """Return the numbers of each role's pods: active, ready, succeeded, failed."""
    known = job.status.replica_statuses
    found = {}
    for role in job.spec.roles:
        told = known.get(role.name)
        names = ("active", "ready", "succeeded", "failed")
        found[role.name] = {name: getattr(told, name) if told else 0 for name in names}
    return found


def since(job: TrainingJob, type_: str) -> str | None:
    """Return since when *job*'s condition *type_* is true; None when it is not."""
    for condition in job.status.conditions:
        if condition.type == type_ and condition.status == "True":
            return condition.last_transition_time
    return None


def condition(
    type_: str,
    reason: str,
    message: str,
    moment: str,
    *,
    value: bool = True,
    also: str = "",
) -> Json:
    """Return a condition of a foreign kind; *also* is a second field that holds the *moment*."""
    return {
        "type": type_,
        "status": "True" if value else "False",
        "reason": reason,
        "message": message,
        **({also: moment} if also else {}),
        "lastTransitionTime": moment,
    }
