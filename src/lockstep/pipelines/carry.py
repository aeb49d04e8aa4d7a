"""Carrying out what an engine says: pods and objects are made, read and deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import PODS, Pod
from lockstep.api.meta import owner_reference
from lockstep.api.names import ATTEMPT_LABEL
from lockstep.api.pipeline import PIPELINE_RUNS, STEP_ANNOTATION, PipelineRun
from lockstep.api.pipeline_trigger import CHAIN_ANNOTATION
from lockstep.api.resource import Resource
from lockstep.api.wire import Json, to_builtins
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.kube.events import last_warning
from lockstep.kube.informer import Informer
from lockstep.pipelines.core import objects, pods, results
from lockstep.pipelines.core.engine import Engine
from lockstep.pipelines.core.nodes import Node, there
from lockstep.pipelines.core.objects import StepKind
from lockstep.pipelines.core.told import Action, Ensure, Explain, Seen
from lockstep.pipelines.core.values import BadExpression
from lockstep.runtime.own_image import with_own_image
from lockstep.runtime.refusals import refuses

log = logging.getLogger(__name__)


AT_ONCE: Final = 32
"""Most requests of one run under way."""
STOP_GRACE: Final = 30
_MAKES: Final = frozenset({"Create", "Apply"})
_STAYS: Final = frozenset({"ModelVersion", "ScheduledSparkApplication"})
"""Kinds that outlive the run that made them."""


def step_of(pod: Pod) -> tuple[str, int]:
    """Return the step and the try that *pod* is."""
    meta = pod.metadata
    attempt = meta.labels.get(ATTEMPT_LABEL, "")
    return meta.annotations.get(STEP_ANNOTATION, ""), int(attempt) if attempt.isdigit() else -1


@dataclass
class Carrier:
    """Carries out the actions of one run."""

    client: Client
    pods: Informer[Pod]
    objects: Mapping[Resource[Any], Informer[Any]]
    run: PipelineRun
    engine: Engine
    clock: Callable[[], float]

    async def carry_out(self, actions: Sequence[Action]) -> None:
        """Do *actions*, several at once; what the server refuses fails its step.

        Raises:
            ApiError: when the server cannot be used now.
        """
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(action: Action) -> None:
            async with gate:
                await self._one(action)

        if len(actions) == 1:
            await self._one(actions[0])
            return
        done = await asyncio.gather(*(one(a) for a in actions), return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _one(self, action: Action) -> None:
        node = self.engine.nodes[action.step]
        if isinstance(action, Explain):
            pod = self.pods.get(self.run.metadata.namespace, node.object)
            why = await last_warning(self.client, pod.metadata) if pod is not None else ""
            self.engine.explain(node.id, action.attempt, why, self.clock())
            return
        if not isinstance(action, Ensure):
            await self._remove(node, action.attempt)
            return
        if node.over or node.attempt != action.attempt:
            return
        try:
            if node.kind == "Pod":
                await self._ensure_pod(node)
            else:
                await self._ensure_object(node)
        except BadExpression as error:
            self._say(node, Seen("Failed", str(error)))
        except ApiError as error:
            if not refuses(error):
                raise
            self._say(node, Seen("Failed", f"refused by the server: {error.message}"))

    def _say(self, node: Node, seen: Seen) -> None:
        self.engine.observe(node.id, node.attempt, seen, self.clock())

    # --- pods ---

    async def _ensure_pod(self, node: Node) -> None:
        body = pods.build(self.engine, node)
        with_own_image(body["spec"])
        name = body["metadata"]["name"]
        if node.object != name:
            node.object = name
            self.engine.changed.add(node.id)
        space = self.run.metadata.namespace
        known = self.pods.get(space, name)
        if known is not None:
            # Of a life before: what happened to it since is told by no further event.
            self._say(
                node, results.of_pod(known, has_outputs=bool(there(node.template.pod).outputs))
            )
            return
        body["metadata"]["ownerReferences"] = [owner_reference(self.run, PIPELINE_RUNS)]
        try:
            await self.client.create(PODS, body, space)
        except AlreadyExists:
            log.debug("%s is there already", name)

    async def _remove(self, node: Node, attempt: int) -> None:
        meta = self.run.metadata
        if node.kind == "Pod":
            name = pods.object_name(meta.name, meta.uid, node.id, attempt)
            await self._delete(PODS, name, STOP_GRACE)
            return
        try:
            kind, step, body = objects.build(self.engine, node)
        except BadExpression:
            return
        if step.action == "Create":
            await self._delete(kind.resource, body["metadata"]["name"], None)

    async def _delete(self, resource: Resource[Any], name: str, grace: int | None) -> None:
        try:
            await self.client.delete(
                resource,
                name,
                self.run.metadata.namespace,
                grace_seconds=grace,
                propagation="Background",
            )
        except NotFound:
            log.debug("%s %s is gone already", resource.kind, name)

    # --- other objects ---

    async def _ensure_object(self, node: Node) -> None:
        kind, step, body = objects.build(self.engine, node)
        name = body["metadata"]["name"]
        if (chain := self.run.metadata.annotations.get(CHAIN_ANNOTATION)) and step.action in _MAKES:
            body["metadata"]["annotations"][CHAIN_ANNOTATION] = chain
        node.object = f"{kind.resource.kind}/{name}"
        self.engine.changed.add(node.id)
        if step.action == "Delete":
            await self._delete(kind.resource, name, None)
            self._say(node, Seen("Succeeded"))
            return
        if step.action == "Get":
            await self._read(node, kind, name)
            return
        if step.action == "Apply":
            made = await self._apply(kind.resource, name, body)
        else:
            found = await self._create(node, kind.resource, body)
            if found is None:
                return
            made = found
        if not kind.watched:
            self._say(node, objects.judge(kind, node, to_builtins(made)))
            return
        there = self.objects[kind.resource].get(self.run.metadata.namespace, name)
        if there is not None and there.metadata.generation >= made.metadata.generation:
            self._say(node, objects.judge(kind, node, to_builtins(there)))

    async def _read(self, node: Node, kind: StepKind, name: str) -> None:
        try:
            found = await self.client.get(kind.resource, name, self.run.metadata.namespace)
            tree = to_builtins(found)
        except NotFound:
            tree = {}
        step = there(node.template.object)
        if not tree and not step.success:
            self._say(node, Seen("Failed", f"there is no {node.object}"))
            return
        once = StepKind(kind.resource)
        self._say(node, objects.judge(once, node, tree))

    async def _apply(self, resource: Resource[Any], name: str, body: Json) -> Any:
        return await self.client.patch(
            resource,
            name,
            body,
            self.run.metadata.namespace,
            how=Patch.APPLY,
            field_manager="lockstep-pipelines",
            force=True,
        )

    async def _create(self, node: Node, resource: Resource[Any], body: Json) -> Any:
        space = self.run.metadata.namespace
        if resource.kind not in _STAYS:
            body["metadata"]["ownerReferences"] = [owner_reference(self.run, PIPELINE_RUNS)]
        try:
            return await self.client.create(resource, body, space)
        except AlreadyExists:
            found = await self.client.get(resource, body["metadata"]["name"], space)
        mark = body["metadata"]["annotations"][STEP_ANNOTATION]
        if found.metadata.annotations.get(STEP_ANNOTATION) != mark:
            self._say(node, Seen("Failed", f"{node.object} is there already and not of this step"))
            return None
        return found
