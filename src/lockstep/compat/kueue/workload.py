"""Kueue's Workload of a job that names a queue: whether it is admitted, and why not."""

from __future__ import annotations

import hashlib
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.gang import Gang
from lockstep.api.meta import owner_reference
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.compat.kueue.contract import Terms
from lockstep.compat.kueue.kinds import WORKLOAD

JOB_UID: Final = "kueue.x-k8s.io/job-uid"
_ENDS: Final = ("Succeeded", "Failed")


def workload_name(obj: AnyObject) -> str:
    """Return what the Workload of *obj* is called: ``KIND-NAME-HASH``."""
    told = f"{obj.kind.lower()}-{obj.metadata.name}"
    mark = hashlib.sha1(obj.metadata.uid.encode(), usedforsecurity=False).hexdigest()[:5]
    return f"{told[:247]}-{mark}"


def workload(obj: AnyObject, job: TrainingJob, terms: Terms) -> Json:
    """Return the Workload of *obj*, of which *job* was made, without its status."""
    return {
        "apiVersion": f"{WORKLOAD.group}/{WORKLOAD.version}",
        "kind": WORKLOAD.kind,
        "metadata": {
            "name": workload_name(obj),
            "namespace": obj.metadata.namespace,
            "labels": {JOB_UID: obj.metadata.uid},
            "ownerReferences": [owner_reference(obj)],
        },
        "spec": {
            "active": True,
            "queueName": terms.queue,
            "podSets": [
                {"name": role.name, "count": role.replicas, "template": role.template}
                for role in job.spec.roles
            ],
        },
    }


def status(there: AnyObject, job: TrainingJob, gang: Gang | None, terms: Terms, now: str) -> Json:
    """Return the status of the Workload *there*; *now* stamps conditions that change."""
    phase = job.status.phase
    placed = gang is not None and gang.status.phase in ("Placed", "Running", "Finished")
    over = phase in _ENDS
    told = gang.status.message if gang is not None else "The job stands in line"
    reserved = f"Quota reserved in ClusterQueue {terms.cluster_queue}"
    rows = [
        ("QuotaReserved", placed or over, "QuotaReserved", reserved if placed or over else told),
        ("Admitted", placed or over, "Admitted", "The workload is admitted" if placed else told),
    ]
    if over:
        rows.append(("Finished", True, phase, job.status.message or f"Job {phase.lower()}"))
    before = {one.get("type"): one for one in there.status.get("conditions") or ()}
    conditions = []
    for type_, holds, reason, message in rows:
        said = {
            "type": type_,
            "status": "True" if holds else "False",
            "reason": reason if holds else "Pending",
            "message": message or "The job stands in line",
        }
        known = before.get(type_, {})
        same = known.get("status") == said["status"]
        since = known.get("lastTransitionTime", now) if same else now
        conditions.append({**said, "lastTransitionTime": since})
    found: Json = {"conditions": conditions}
    if placed or over:
        assigned = [
            {"name": role.name, "count": role.replicas, "flavors": dict(terms.flavors)}
            for role in job.spec.roles
        ]
        found["admission"] = {"clusterQueue": terms.cluster_queue, "podSetAssignments": assigned}
    return found
