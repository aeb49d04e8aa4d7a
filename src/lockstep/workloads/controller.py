"""The shell around the rules of workloads: gathers what one has, does what is decided, says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import (
    CONTROLLER_REVISIONS,
    NODES,
    PODS,
    AnyObject,
)
from lockstep.api.label_requirements import SelectorError
from lockstep.api.meta import LabelSelector, ObjectMeta, controller_of
from lockstep.api.resource import Resource
from lockstep.api.selectors import from_selector
from lockstep.api.wire import Json, Wire, convert, to_builtins
from lockstep.kube.errors import ApiError
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Action, Change, Create, Delete, Note
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import execute, execute_all
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.refusals import Refusal
from lockstep.runtime.status import write_status
from lockstep.workloads.core.plan import JOBS, REPLICA_SETS, Plan, World, owner

T = TypeVar("T", bound=Wire)

BY_OWNER: Final = "lockstep.dev/owner"
BY_SPACE: Final = "lockstep.dev/namespace"


def owners(obj: Any) -> list[str]:
    """Return the uid of what controls *obj*, if something does."""
    found = controller_of(obj.metadata)
    return [found.uid] if found else []


def spaces(obj: Any) -> list[str]:
    """Return the namespace of *obj*."""
    return [obj.metadata.namespace]


@dataclass
class WorkloadController:
    """Brings the objects of one kind to what they say."""

    writer: Writer
    resource: Resource[AnyObject]
    decide: Callable[[AnyObject, World, float], Plan]
    objects: Informer[AnyObject]
    children: Mapping[Resource[Any], Informer[Any]]
    """What objects of the kind own, by its resource, and the nodes."""
    claims: Resource[Any] | None = None
    """Of which resource those that a selector matches are an object's own."""
    refused: Callable[[AnyObject], str] = field(default=lambda _: "")
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the object at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        obj = self.objects.get(*key)
        if obj is None:
            return None
        if told := self.refused(obj):
            self._warn(obj, "Refused", told)
            return None
        now = self.clock()
        plan = self.decide(obj, await self._world(obj), now)
        if plan.refused:
            self._warn(obj, "Refused", plan.refused)
        failure = await self._act(obj, plan)
        if failure is not None and self.resource is REPLICA_SETS:
            plan.status["conditions"] = [_failed(obj, str(failure), timestamp.show(now))]
        await write_status(self.writer.client, self.resource, obj, plan.status)
        if failure is not None:
            raise failure
        return plan.again

    async def _world(self, obj: AnyObject) -> World:
        found: dict[Resource[Any], Sequence[Any]] = {
            res: cache.by_index(BY_OWNER, obj.metadata.uid)
            for res, cache in self.children.items()
            if res is not NODES
        }
        if self.claims is not None:
            found[self.claims] = await self._claimed(obj, self.claims)
        pods = self.children.get(PODS)
        there = pods.by_index(BY_SPACE, obj.metadata.namespace) if pods is not None else ()
        return World(
            pods=found.get(PODS, ()),
            sets=found.get(REPLICA_SETS, ()),
            jobs=found.get(JOBS, ()),
            revisions=found.get(CONTROLLER_REVISIONS, ()),
            nodes=tuple(self.children[NODES]) if NODES in self.children else (),
            names=frozenset(one.metadata.name for one in there),
        )

    async def _claimed(self, obj: AnyObject, res: Resource[T]) -> list[T]:
        """Return the objects of *res* that are *obj*'s: orphans come, those that differ go."""
        cache: Informer[Any] = self.children[res]
        try:
            selector = from_selector(convert(obj.spec.get("selector"), LabelSelector))
        except (SelectorError, msgspec.ValidationError):
            return []
        own = []
        for one in cache.by_index(BY_OWNER, obj.metadata.uid):
            if selector.matches(one.metadata.labels):
                own.append(one)
            elif one.metadata.deletion_timestamp is None:
                kept = [o for o in one.metadata.owner_references if o.uid != obj.metadata.uid]
                await self._own(res, one.metadata, to_builtins(kept))
        if obj.metadata.deletion_timestamp is not None:
            return own
        for one in cache.by_index(BY_SPACE, obj.metadata.namespace):
            meta = one.metadata
            if controller_of(meta) is not None or meta.deletion_timestamp is not None:
                continue
            if selector.matches(meta.labels):
                others = to_builtins(meta.owner_references)
                await self._own(res, meta, [*others, owner(self.resource, obj)])
                own.append(one)
        return own

    async def _own(self, res: Resource[Any], meta: ObjectMeta, references: list[Json]) -> None:
        said = {"resourceVersion": meta.resource_version, "ownerReferences": references}
        await self.writer.client.patch(res, meta.name, {"metadata": said}, meta.namespace)

    async def _act(self, obj: AnyObject, plan: Plan) -> ApiError | None:
        """Do what is planned; return the refusal that ended it, if one did."""

        async def do(action: Action) -> Refusal | None:
            refusal = await execute(self.writer.client, action, obj.metadata.namespace)
            if refusal is None and (note := _told(action)):
                self.writer.tell(self.resource, obj, note)
            return refusal

        for refusal in await execute_all(plan.actions, do):
            self._warn(obj, "FailedCreate", f"Error creating: {refusal.error}")
            return refusal.error
        return None

    def _warn(self, obj: AnyObject, reason: str, message: str) -> None:
        self.writer.tell(self.resource, obj, Note(reason, message, warning=True))


def _told(action: Action) -> Note | None:
    """Return the event that Kubernetes' own controllers record about *action*."""
    match action:
        case Create(resource=res) if res is PODS:
            return Note("SuccessfulCreate", f"Created pod: {action.name}")
        case Delete(resource=res) if res is PODS:
            return Note("SuccessfulDelete", f"Deleted pod: {action.name}")
        case Change(patch={"spec": {"replicas": size}}):
            return Note("ScalingReplicaSet", f"Scaled replica set {action.name} to {size}")
    return None


def _failed(obj: AnyObject, message: str, now: str) -> Json:
    """Return the condition of a ReplicaSet whose pods the server refuses."""
    before: Json = next(iter(obj.status.get("conditions") or ()), {})
    said = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": message,
    }
    return {**said, "lastTransitionTime": before.get("lastTransitionTime", now)}
