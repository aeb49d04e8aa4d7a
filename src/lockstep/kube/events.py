"""Recording what happens to objects as Events that people read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from functools import lru_cache
from typing import Any, Literal

from lockstep.api import core, gang, queue, topology, training
from lockstep.api.core import EVENTS, ObjectReference
from lockstep.api.meta import ObjectMeta
from lockstep.api.resource import Resource
from lockstep.api.timestamp import show
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.event_series import EventSeries, Happening, Record, Subject

log = logging.getLogger(__name__)

WRITERS = 4
WAITING = 2000
FLUSH_SECONDS = 2.0


async def last_warning(client: Client, about: ObjectMeta) -> str:
    """Return the latest warning about an object, as ``REASON: MESSAGE``; empty where none is.

    Raises:
        ApiError: when the server cannot be asked.
    """
    only = f"involvedObject.uid={about.uid},type=Warning"
    events = (await client.list(EVENTS, about.namespace, field_selector=only)).items
    last = max(events, key=lambda one: one.last_timestamp or one.event_time or "", default=None)
    return "" if last is None else f"{last.reason}: {last.message}"


class Recorder:
    """Writes Events about objects in the background; never waits and never fails its caller."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client.unfenced()
        self._component = component
        self._instance = f"{component}-{socket.gethostname()}-{os.getpid()}"[:128]
        self._series = EventSeries()
        self._queues: list[asyncio.Queue[Record]] = []
        self._writers: list[asyncio.Task[None]] = []
        self._dropped = 0

    def event(
        self, obj: Any, type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Record that *reason* happened to *obj*, a view of an object or a reference to one.

        Repetitions raise the count of the first event instead of making new ones.
        """
        subject = subject_of(obj)
        record = self._series.take(Happening(subject, type, reason, message), time.time())
        if record is None:
            return
        if not self._writers:
            self._start()
        # One object's events keep to one writer, so that a count never precedes its event.
        try:
            self._queues[hash(subject) % WRITERS].put_nowait(record)
        except asyncio.QueueFull:
            self._dropped += 1
            if self._dropped % WAITING == 1:
                log.warning("events come faster than they are written; %d dropped", self._dropped)

    def _start(self) -> None:
        self._queues = [asyncio.Queue(WAITING) for _ in range(WRITERS)]
        self._writers = [asyncio.create_task(self._write_all(queue)) for queue in self._queues]

    async def close(self) -> None:
        """Write what still waits, for a moment at most, and stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                for waiting in self._queues:
                    await waiting.join()
        for writer in self._writers:
            writer.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)
        self._writers.clear()

    async def _write_all(self, waiting: asyncio.Queue[Record]) -> None:
        while True:
            record = await waiting.get()
            try:
                await self._write(record)
            except ApiError as error:
                # Events are a courtesy to people; work does not stop for them.
                log.debug("event %s was not written: %s", record.name, error)
            finally:
                waiting.task_done()

    async def _write(self, record: Record) -> None:
        space = record.happening.subject.namespace or "default"
        if record.count > 1:
            change = {
                "count": record.count,
                "lastTimestamp": show(record.last),
                "message": record.happening.message,
            }
            with contextlib.suppress(NotFound):
                await self._client.patch(EVENTS, record.name, change, space)
                return
        await self._client.create(EVENTS, self._body(record, space))

    def _body(self, record: Record, space: str) -> dict[str, Any]:
        happening = record.happening
        subject = happening.subject
        involved = {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        }
        return {
            "metadata": {"name": record.name, "namespace": space},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": happening.type,
            "reason": happening.reason,
            "message": happening.message,
            "count": record.count,
            "firstTimestamp": show(record.first),
            "lastTimestamp": show(record.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def reference(resource: Resource[Any], meta: ObjectMeta) -> ObjectReference:
    """Return the reference to an object of *resource*; objects from lists do not say their kind."""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
    )


def subject_of(obj: Any) -> Subject:
    """Return what an event about *obj* refers to; objects from lists do not say their kind."""
    if isinstance(obj, ObjectReference):
        return Subject(obj.api_version, obj.kind, obj.namespace, obj.name, obj.uid)
    meta = obj.metadata
    known = _resources().get(type(obj))
    api_version = getattr(obj, "api_version", "") or (known.api_version if known else "")
    kind = getattr(obj, "kind", "") or (known.kind if known else type(obj).__name__)
    return Subject(api_version, kind, meta.namespace, meta.name, meta.uid)


@lru_cache(maxsize=1)
def _resources() -> dict[type, Resource[Any]]:
    """Return the resource of each view that stands for one kind only."""
    return {
        value.type: value
        for module in (core, gang, queue, topology, training)
        for value in vars(module).values()
        if isinstance(value, Resource) and value.type is not core.AnyObject
    }
