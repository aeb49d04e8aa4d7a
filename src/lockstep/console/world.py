"""The shared copy of what all pages show; it is read from the first sign-in on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from lockstep.api.core import EVENTS, PODS, Event, Pod
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import JOB_LABEL
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.console.views import jobs
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

SYNC_SECONDS: Final = 20.0
BY_JOB: Final = "job"
BY_NAME: Final = "about"

Listener = Callable[[str, str, str], None]
"""Takes the kind of what changed, its namespace, and the job or object that it belongs to."""


class World:
    """Informers with the console's own account, and rows that are kept sorted."""

    def __init__(self, client: Client) -> None:
        self.jobs = Informer(client, TRAINING_JOBS, transform=jobs.slim)
        self.gangs = Informer(client, GANGS)
        self.pods = Informer(client, PODS, indices={BY_JOB: _job_of})
        self.events = Informer(client, EVENTS, indices={BY_NAME: _about})
        self.job_rows = jobs.rows()
        self._listeners: set[Listener] = set()
        self._running: asyncio.Task[None] | None = None
        self.jobs.subscribe(self._on_job)
        self.gangs.subscribe(self._on_gang)
        self.pods.subscribe(self._on_pod)
        self.events.subscribe(self._on_event)

    async def ready(self) -> bool:
        """Read everything once, from the first call on; tell whether that is done."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        informers = self._informers()
        if all(one.synced for one in informers):
            return True
        synced = asyncio.gather(*(one.wait_synced() for one in informers))
        try:
            await asyncio.wait_for(synced, SYNC_SECONDS)
        except TimeoutError:
            return False
        return True

    def problem(self) -> str:
        """Return why what is shown may be old; empty where it is current."""
        return next((one.problem for one in self._informers() if one.problem), "")

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* at each change; return what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def job_namespaces(self) -> set[str]:
        """Return the namespaces that have jobs."""
        return {row.namespace for row in self.job_rows.rows.values()}

    def pods_of(self, namespace: str, job: str) -> list[Pod]:
        """Return the pods of a job."""
        return self.pods.by_index(BY_JOB, f"{namespace}/{job}")

    def events_about(self, namespace: str, names: list[str]) -> list[Event]:
        """Return what was told of the objects of these names."""
        return [e for name in names for e in self.events.by_index(BY_NAME, f"{namespace}/{name}")]

    async def close(self) -> None:
        """Stop following the server."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _informers(self) -> tuple[Informer[Any], ...]:
        return (self.jobs, self.gangs, self.pods, self.events)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for one in self._informers():
                group.create_task(one.run())

    def _on_job(self, change: Change[TrainingJob]) -> None:
        meta = change.object.metadata
        key = jobs.key_of(meta.namespace, meta.name)
        if change.new is None:
            self.job_rows.remove(key)
        else:
            gang = self.gangs.get(meta.namespace, meta.name)
            self.job_rows.put(key, jobs.row(change.new, gang))
        self._tell("TrainingJob", meta.namespace, meta.name)

    def _on_gang(self, change: Change[Gang]) -> None:
        meta = change.object.metadata
        job = self.jobs.get(meta.namespace, meta.name)
        if job is not None:
            self.job_rows.put(jobs.key_of(meta.namespace, meta.name), jobs.row(job, change.new))
            self._tell("Gang", meta.namespace, meta.name)

    def _on_pod(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        if job := meta.labels.get(JOB_LABEL):
            self._tell("Pod", meta.namespace, job)

    def _on_event(self, change: Change[Event]) -> None:
        event = change.object
        self._tell("Event", event.metadata.namespace, event.involved_object.name)

    def _tell(self, kind: str, namespace: str, name: str) -> None:
        for listener in tuple(self._listeners):
            listener(kind, namespace, name)


def _job_of(pod: Pod) -> list[str]:
    job = pod.metadata.labels.get(JOB_LABEL)
    return [f"{pod.metadata.namespace}/{job}"] if job else []


def _about(event: Event) -> list[str]:
    return [f"{event.metadata.namespace}/{event.involved_object.name}"]
