"""One step for one object: look, decide, act, write the status."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from lockstep.api.core import ObjectReference
from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.events import Recorder, reference
from lockstep.kube.informer import Informer
from lockstep.runtime.actions import Action, Decision, Note
from lockstep.runtime.controller import Key
from lockstep.runtime.execution import Execute, execute, execute_all
from lockstep.runtime.refusals import RETRY_REFUSED, Refusal
from lockstep.runtime.status import write_status

V = TypeVar("V")
S = TypeVar("S")

MESSAGE: Final = 1000
"""Characters of an event's message."""


@dataclass
class Writer:
    """Carries decisions out."""

    client: Client
    recorder: Recorder

    async def carry_out(
        self, resource: Resource[Any], obj: Any, decision: Decision[Any], do: Execute | None = None
    ) -> float | None:
        """Do what was decided for *obj*; return when to look again.

        The server's refusals become events. *do* stands for ``execute`` where a room has
        actions of its own.

        Raises:
            ApiError: when the view was stale or the server cannot be used now.
        """
        if decision.record_first:
            await self._record(resource, obj, decision)
        refusals = await self.act(reference(resource, obj.metadata), decision.actions, do)
        if not decision.record_first:
            await self._record(resource, obj, decision)
        if not refusals or decision.again is not None:
            return decision.again
        return RETRY_REFUSED

    async def act(
        self, subject: ObjectReference, actions: Iterable[Action], do: Execute | None = None
    ) -> tuple[Refusal, ...]:
        """Do *actions* for *subject*; return the refusals, which become its events.

        Raises:
            ApiError: as ``carry_out``.
        """

        async def usual(action: Action) -> Refusal | None:
            return await execute(self.client, action, subject.namespace)

        refusals = await execute_all(actions, do or usual)
        for refusal in refusals:
            self.recorder.event(subject, "Warning", "Refused", str(refusal)[:MESSAGE])
        return refusals

    async def _record(self, resource: Resource[Any], obj: Any, decision: Decision[Any]) -> None:
        if decision.status is None:
            return
        if await write_status(self.client, resource, obj, decision.status) is None:
            return
        for note in decision.notes:
            self.tell(resource, obj, note)

    def tell(self, resource: Resource[Any], obj: Any, note: Note) -> None:
        """Record *note* as an event of *obj*."""
        subject = reference(resource, obj.metadata)
        kind: Literal["Normal", "Warning"] = "Warning" if note.warning else "Normal"
        self.recorder.event(subject, kind, note.reason, note.message[:MESSAGE])


@dataclass
class Reconciler(Generic[V, S]):
    """The shell of a controller whose core is a pure function *decide* of what *see* returns."""

    objects: Informer[Any]
    see: Callable[[Any], Awaitable[V | None]]
    """Gathers what the core wants to know; None when there is nothing to do."""
    decide: Callable[[V, float], Decision[S]]
    writer: Writer
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the object at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        obj = self.objects.get(*key)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            return None
        seen = await self.see(obj)
        if seen is None:
            return None
        decision = self.decide(seen, self.clock())
        return await self.writer.carry_out(self.objects.resource, obj, decision)
