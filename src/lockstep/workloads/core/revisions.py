"""Templates that were in force at some time, kept as ControllerRevisions to go back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lockstep.api.core import CONTROLLER_REVISIONS, AnyObject, ControllerRevision
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.runtime.actions import Change, Create, Delete
from lockstep.workloads.core.plan import Plan, owner, word

HASH_LABEL: Final = "controller-revision-hash"


def newest(
    resource: Resource[Any], obj: AnyObject, there: Sequence[ControllerRevision], plan: Plan
) -> str:
    """Return the name of the revision of *obj*'s template; it is planned where it is missing."""
    template = {**(obj.spec.get("template") or {}), "$patch": "replace"}
    data: Json = {"spec": {"template": template}}
    last = max((one.revision for one in there), default=0)
    same = next((one for one in there if one.data == data), None)
    if same is not None:
        if same.revision < last:
            patch = {"revision": last + 1}
            plan.actions.append(Change.of(CONTROLLER_REVISIONS, same.metadata, patch))
        return same.metadata.name
    hashed = word(10, template, obj.status.get("collisionCount", 0))
    labels = (obj.spec.get("selector") or {}).get("matchLabels") or {}
    name = f"{obj.metadata.name}-{hashed}"
    body = {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "labels": {**labels, "controller.kubernetes.io/hash": hashed},
            "ownerReferences": [owner(resource, obj)],
        },
        "data": data,
        "revision": last + 1,
    }
    plan.actions.append(Create(CONTROLLER_REVISIONS, body))
    return name


def template_of(name: str, obj: AnyObject, there: Sequence[ControllerRevision]) -> Json:
    """Return the template of the revision *name*; today's where that revision is not there."""
    found = next((one for one in there if one.metadata.name == name), None)
    kept = ((found.data.get("spec") or {}).get("template") or {}) if found else {}
    template = kept or obj.spec.get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}


def forget(obj: AnyObject, there: Sequence[ControllerRevision], used: set[str], plan: Plan) -> None:
    """Plan the end of revisions beyond those that a rollback may want."""
    limit = int(obj.spec.get("revisionHistoryLimit", 10))
    idle = sorted((r for r in there if r.metadata.name not in used), key=lambda r: r.revision)
    for one in idle[: max(0, len(idle) - limit)]:
        plan.actions.append(Delete.of(CONTROLLER_REVISIONS, one.metadata))
