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
    ObjectReference,
)
from lockstep.api.label_requirements import SelectorError
from lockstep.api.merge import difference
from lockstep.api.meta import LabelSelector, ObjectMeta, controller_of
from lockstep.api.resource import Resource
from lockstep.api.selectors import from_selector
from lockstep.api.wire import Wire, convert, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.workloads.core.plan import (
    JOBS,
    REPLICA_SETS,
    Change,
    Create,
    Delete,
    Json,
    Plan,
    World,
    owner,
)

T = TypeVar("T", bound=Wire)

BY_OWNER: Final = "lockstep.dev/owner"
BY_SPACE: Final = "lockstep.dev/namespace"
_REFUSALS: Final = frozenset({400, 403, 405, 413, 422})


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

    client: Client
    resource: Resource[AnyObject]
    decide: Callable[[AnyObject, World, float], Plan]
    objects: Informer[AnyObject]
    children: Mapping[Resource[Any], Informer[Any]]
    """What objects of the kind own, by its resource, and the nodes."""
    recorder: Recorder
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
        if patch := difference(obj.status, plan.status):
            await self.client.patch(
                self.resource,
                obj.metadata.name,
                {"metadata": {"uid": obj.metadata.uid}, "status": patch},
                obj.metadata.namespace,
                subresource="status",
            )
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
        await self.client.patch(res, meta.name, {"metadata": said}, meta.namespace)

    async def _act(self, obj: AnyObject, plan: Plan) -> ApiError | None:
        """Do what is planned; return the refusal that ended it, if one did."""
        for action in plan.actions:
            try:
                await self._do(obj, action)
            except ApiError as error:
                if error.status not in _REFUSALS:
                    raise
                self._warn(obj, "FailedCreate", f"Error creating: {error}")
                return error
        return None

    async def _do(self, obj: AnyObject, action: Create | Change | Delete) -> None:
        space, res = obj.metadata.namespace, action.resource
        match action:
            case Create(body=body):
                try:
                    await self.client.create(res, body, space)
                except AlreadyExists:
                    return
                if res is PODS:
                    self._tell(obj, "SuccessfulCreate", f"Created pod: {body['metadata']['name']}")
            case Change(meta=meta, patch=patch):
                guarded = {"resourceVersion": meta.resource_version, **patch.get("metadata", {})}
                body = {**patch, "metadata": guarded}
                await self.client.patch(res, meta.name, body, space)
                if "replicas" in patch.get("spec", {}):
                    size = patch["spec"]["replicas"]
                    self._tell(
                        obj, "ScalingReplicaSet", f"Scaled replica set {meta.name} to {size}"
                    )
            case Delete(meta=meta):
                try:
                    await self.client.delete(
                        res, meta.name, space, uid=meta.uid, propagation="Background"
                    )
                except NotFound:
                    return
                if res is PODS:
                    self._tell(obj, "SuccessfulDelete", f"Deleted pod: {meta.name}")

    def _subject(self, obj: AnyObject) -> ObjectReference:
        return ObjectReference(
            api_version=self.resource.api_version,
            kind=self.resource.kind,
            namespace=obj.metadata.namespace,
            name=obj.metadata.name,
            uid=obj.metadata.uid,
        )

    def _tell(self, obj: AnyObject, reason: str, message: str) -> None:
        self.recorder.event(self._subject(obj), "Normal", reason, message)

    def _warn(self, obj: AnyObject, reason: str, message: str) -> None:
        self.recorder.event(self._subject(obj), "Warning", reason, message)


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
