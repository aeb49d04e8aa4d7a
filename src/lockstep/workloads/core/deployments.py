"""Deployments: a ReplicaSet for each template, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import AnyObject
from lockstep.api.merge import merged
from lockstep.api.wire import Json
from lockstep.runtime.actions import Change, Create, Delete
from lockstep.workloads.core.plan import (
    DEPLOYMENTS,
    REPLICA_SETS,
    Plan,
    World,
    amount,
    owner,
    queue_label,
    word,
)

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_HISTORY: Final = "deployment.kubernetes.io/revision-history"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MOST: Final = "deployment.kubernetes.io/max-replicas"
_DEADLINE: Final = 600
_NEVER: Final = 2**31 - 1
"""A deadline that kube-controller-manager takes for none."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A Deployment with its ReplicaSets, the one of today's template apart."""

    obj: AnyObject
    new: AnyObject | None
    old: Sequence[AnyObject]
    now: float

    @property
    def sets(self) -> list[AnyObject]:
        """All ReplicaSets."""
        return [*([self.new] if self.new else []), *self.old]

    @property
    def wanted(self) -> int:
        """How many pods there are to be."""
        return int(self.obj.spec.get("replicas", 1))

    @property
    def recreates(self) -> bool:
        """Whether all old pods end before the first new one starts."""
        return bool((self.obj.spec.get("strategy") or {}).get("type") == "Recreate")

    def bounds(self) -> tuple[int, int]:
        """Return how many pods there may be too many, and too few, while it rolls."""
        if self.recreates:
            return 0, 0
        rolling = (self.obj.spec.get("strategy") or {}).get("rollingUpdate") or {}
        surge = amount(rolling.get("maxSurge"), self.wanted, -(-self.wanted // 4), up=True)
        lack = amount(rolling.get("maxUnavailable"), self.wanted, self.wanted // 4, up=False)
        if not surge and not lack:
            lack = 1
        return surge, min(lack, self.wanted)


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the Deployment *obj* needs next."""
    template = _bare(obj.spec.get("template") or {})
    by_age = sorted(
        world.sets, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name)
    )
    new = next((one for one in by_age if _bare(one.spec.get("template") or {}) == template), None)
    rollout = Rollout(obj, new, [one for one in by_age if one is not new], now)
    plan = Plan({})
    made = ""
    if obj.metadata.deletion_timestamp is None:
        if new is None and not obj.spec.get("paused"):
            made = _make(rollout, plan)
        else:
            _scale(rollout, plan)
    plan.status = _status(rollout, plan, made)
    if _complete(rollout, plan.status):
        _forget(rollout, plan)
    return plan


def _bare(template: Json) -> Json:
    """Return a template without the label that says its hash."""
    meta = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (meta.pop("labels", None) or {}).items() if k != HASH_LABEL}
    meta = {key: value for key, value in meta.items() if value is not None}
    return {"labels": labels, "meta": meta, "spec": template.get("spec")}


def _replicas(one: AnyObject) -> int:
    return int(one.spec.get("replicas", 1))


def _available(one: AnyObject) -> int:
    return int(one.status.get("availableReplicas", 0))


def _revision(one: AnyObject) -> int:
    text = one.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def _make(rollout: Rollout, plan: Plan) -> str:
    """Plan the ReplicaSet of the template; return its name."""
    obj = rollout.obj
    template: Json = obj.spec.get("template") or {}
    hashed = word(10, template, obj.status.get("collisionCount", 0))
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), HASH_LABEL: hashed}
    selector = obj.spec.get("selector") or {}
    matched = {**(selector.get("matchLabels") or {}), HASH_LABEL: hashed}
    surge, _ = rollout.bounds()
    if rollout.recreates:
        count = 0 if any(map(_replicas, rollout.old)) else rollout.wanted
    else:
        room = rollout.wanted + surge - sum(map(_replicas, rollout.old))
        count = max(0, min(room, rollout.wanted))
    revision = str(max(map(_revision, rollout.old), default=0) + 1)
    spec: Json = {
        "replicas": count,
        "selector": {**selector, "matchLabels": matched},
        "template": {**template, "metadata": {**meta, "labels": labels}},
    }
    if least := obj.spec.get("minReadySeconds"):
        spec["minReadySeconds"] = least
    name = f"{obj.metadata.name}-{hashed}"
    body = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": name,
            "labels": {**queue_label(obj), **labels},
            "annotations": {**_copied(obj), **_sizes(rollout), REVISION: revision},
            "ownerReferences": [owner(DEPLOYMENTS, obj)],
        },
        "spec": spec,
    }
    plan.actions.append(Create(REPLICA_SETS, body))
    _tell_revision(rollout, revision, plan)
    return name


def _copied(obj: AnyObject) -> dict[str, str]:
    kept = ("deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied-configuration")
    return {k: v for k, v in obj.metadata.annotations.items() if not k.startswith(kept)}


def _sizes(rollout: Rollout) -> dict[str, str]:
    surge, _ = rollout.bounds()
    return {_DESIRED: str(rollout.wanted), _MOST: str(rollout.wanted + surge)}


def _tell_revision(rollout: Rollout, revision: str, plan: Plan) -> None:
    meta = rollout.obj.metadata
    if meta.annotations.get(REVISION) != revision:
        patch = {"metadata": {"annotations": {REVISION: revision}}}
        plan.actions.append(Change.of(DEPLOYMENTS, meta, patch))


def _scale(rollout: Rollout, plan: Plan) -> None:
    """Plan the next sizes of the ReplicaSets, and what the newest says of itself."""
    sizes = {one.metadata.name: _replicas(one) for one in rollout.sets}
    new = rollout.new
    if rollout.obj.spec.get("paused") or new is None:
        # A rollout that is paused is scaled all the same.
        active = [one for one in rollout.sets if _replicas(one)] or rollout.sets
        if len(active) == 1:
            sizes[active[0].metadata.name] = rollout.wanted
    elif rollout.recreates:
        for one in rollout.old:
            sizes[one.metadata.name] = 0
        if not any(_replicas(one) or one.status.get("replicas", 0) for one in rollout.old):
            sizes[new.metadata.name] = rollout.wanted
    else:
        _roll(rollout, new, sizes)
    for one in rollout.sets:
        patch: Json = {}
        if sizes[one.metadata.name] != _replicas(one):
            patch["spec"] = {"replicas": sizes[one.metadata.name]}
        if one is new:
            patch = merged(patch, _renewed(rollout, new))
        if patch:
            plan.actions.append(Change.of(REPLICA_SETS, one.metadata, patch))
    if new is not None:
        newest = max(_revision(new), max(map(_revision, rollout.old), default=0) + 1)
        _tell_revision(rollout, str(newest), plan)


def _renewed(rollout: Rollout, new: AnyObject) -> Json:
    """Return the patch by which the newest ReplicaSet says revision, sizes and its patience."""
    newest = max(_revision(new), max(map(_revision, rollout.old), default=0) + 1)
    said = {**_copied(rollout.obj), **_sizes(rollout), REVISION: str(newest)}
    there = new.metadata.annotations
    before = there.get(REVISION, "")
    if before and before != str(newest):
        said[_HISTORY] = ",".join(filter(None, (there.get(_HISTORY), before)))
    patch: Json = {}
    if changed := {key: value for key, value in said.items() if there.get(key) != value}:
        patch["metadata"] = {"annotations": changed}
    least = rollout.obj.spec.get("minReadySeconds", 0)
    if least != new.spec.get("minReadySeconds", 0):
        patch["spec"] = {"minReadySeconds": least}
    return patch


def _roll(rollout: Rollout, new: AnyObject, sizes: dict[str, int]) -> None:
    """Let the new ReplicaSet grow as far as it may; else let the old ones shrink."""
    surge, lack = rollout.bounds()
    wanted, total = rollout.wanted, sum(sizes.values())
    before = sizes[new.metadata.name]
    after = (
        wanted if before > wanted else before + max(0, min(wanted + surge - total, wanted - before))
    )
    if after != before:
        sizes[new.metadata.name] = after
        return
    least = wanted - lack
    spare = total - least - max(0, before - _available(new))
    for one in rollout.old:
        # What is not available anyway goes first.
        gone = max(0, min(spare, _replicas(one) - _available(one)))
        sizes[one.metadata.name] -= gone
        spare -= gone
    spare = min(spare, sum(map(_available, rollout.sets)) - least)
    for one in rollout.old:
        gone = max(0, min(spare, sizes[one.metadata.name]))
        sizes[one.metadata.name] -= gone
        spare -= gone


def _forget(rollout: Rollout, plan: Plan) -> None:
    """Plan the end of old ReplicaSets beyond those that a rollback may want."""
    limit = int(rollout.obj.spec.get("revisionHistoryLimit", 10))
    idle = [
        one
        for one in sorted(rollout.old, key=_revision)
        if not _replicas(one)
        and not one.status.get("replicas")
        and one.metadata.deletion_timestamp is None
        and one.status.get("observedGeneration", 0) >= one.metadata.generation
    ]
    for one in idle[: max(0, len(idle) - limit)]:
        plan.actions.append(Delete.of(REPLICA_SETS, one.metadata))


def _complete(rollout: Rollout, status: Json) -> bool:
    wanted = rollout.wanted
    counts = ("replicas", "updatedReplicas", "availableReplicas")
    return rollout.new is not None and all(status.get(one, 0) == wanted for one in counts)


def _status(rollout: Rollout, plan: Plan, made: str) -> Json:
    def total(name: str, sets: Sequence[AnyObject]) -> int:
        return sum(int(one.status.get(name, 0)) for one in sets)

    sets = rollout.sets
    available = total("availableReplicas", sets)
    counts = {
        "replicas": total("replicas", sets),
        "updatedReplicas": total("replicas", [rollout.new] if rollout.new else []),
        "readyReplicas": total("readyReplicas", sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(_replicas, sets)) - available),
    }
    status: Json = {"observedGeneration": rollout.obj.metadata.generation}
    status |= {key: value for key, value in counts.items() if value}
    status["terminatingReplicas"] = total("terminatingReplicas", sets)
    if collisions := rollout.obj.status.get("collisionCount"):
        status["collisionCount"] = collisions
    _, lack = rollout.bounds()
    enough = available >= rollout.wanted - lack
    conditions = [
        *_progress(rollout, status, made, plan),
        _condition(
            rollout,
            "Available",
            enough,
            "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        ),
    ]
    before = [one["type"] for one in rollout.obj.status.get("conditions", ())]
    status["conditions"] = sorted(
        [*conditions, *_failures(rollout)],
        key=lambda one: before.index(one["type"]) if one["type"] in before else len(before),
    )
    return status


def _failures(rollout: Rollout) -> list[Json]:
    """Return what the ReplicaSets say of pods that they could not make."""
    said = [one for each in rollout.sets for one in each.status.get("conditions", ())]
    failed = [one for one in said if one.get("type") == "ReplicaFailure"]
    return [
        _condition(rollout, "ReplicaFailure", True, one.get("reason", ""), one.get("message", ""))
        for one in failed[:1]
    ]


def _progress(rollout: Rollout, status: Json, made: str, plan: Plan) -> list[Json]:
    """Return the condition that says how the rollout goes, in kube-controller-manager's words."""
    obj = rollout.obj
    deadline = int(obj.spec.get("progressDeadlineSeconds", _DEADLINE))
    if deadline >= _NEVER:
        return []
    before = _standing(rollout, "Progressing")
    if obj.spec.get("paused"):
        said = "Deployment is paused"
        return [_condition(rollout, "Progressing", None, "DeploymentPaused", said)]
    if made:
        plan.wait(deadline)
        said = f'Created new replica set "{made}"'
        return [_condition(rollout, "Progressing", True, "NewReplicaSetCreated", said)]
    name = rollout.new.metadata.name if rollout.new else ""
    subject = f'ReplicaSet "{name}"'
    if _complete(rollout, status):
        said = f"{subject} has successfully progressed."
        return [_condition(rollout, "Progressing", True, "NewReplicaSetAvailable", said)]
    if before.get("reason") == "NewReplicaSetAvailable" and _same_template(before, name):
        return [before]
    was = obj.status

    def gained(field: str) -> bool:
        return bool(status.get(field, 0) > was.get(field, 0))

    fewer_old = (status.get("replicas", 0) - status.get("updatedReplicas", 0)) < (
        was.get("replicas", 0) - was.get("updatedReplicas", 0)
    )
    grown = any(map(gained, ("updatedReplicas", "readyReplicas", "availableReplicas")))
    if grown or fewer_old or not before or before.get("reason") == "DeploymentPaused":
        plan.wait(deadline)
        said = f"{subject} is progressing."
        return [_condition(rollout, "Progressing", True, "ReplicaSetUpdated", said, renew=True)]
    since = timestamp.read(before.get("lastUpdateTime")) or rollout.now
    left = since + deadline - rollout.now
    if left > 0 or before.get("reason") == "ProgressDeadlineExceeded":
        if left > 0:
            plan.wait(left)
        return [before]
    said = f"{subject} has timed out progressing."
    return [_condition(rollout, "Progressing", False, "ProgressDeadlineExceeded", said)]


def _same_template(before: Json, name: str) -> bool:
    return f'"{name}"' in before.get("message", "")


def _standing(rollout: Rollout, kind: str) -> Json:
    listed: list[Json] = rollout.obj.status.get("conditions") or []
    return next((one for one in listed if one.get("type") == kind), {})


def _condition(
    rollout: Rollout,
    kind: str,
    holds: bool | None,
    reason: str,
    message: str,
    *,
    renew: bool = False,
) -> Json:
    """Return a condition; its times change only with what it says, or where it is to *renew*."""
    before = _standing(rollout, kind)
    value = "Unknown" if holds is None else str(holds)
    said: dict[str, Any] = {"type": kind, "status": value, "reason": reason, "message": message}
    if not renew and all(before.get(key) == given for key, given in said.items()):
        return before
    now = timestamp.show(rollout.now)
    turned = before.get("lastTransitionTime", now) if before.get("status") == value else now
    return {**said, "lastUpdateTime": now, "lastTransitionTime": turned}
