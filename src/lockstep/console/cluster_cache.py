"""The shared copy of what pages show; each kind is read from the first page on that shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from lockstep.api.core import EVENTS, LEASES, NODES, PODS, AnyObject, Event, Pod
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.gang import GANGS, Gang
from lockstep.api.names import JOB_LABEL
from lockstep.api.node_health import NODE_HEALTHS
from lockstep.api.queue import QUEUES
from lockstep.api.topology import TOPOLOGIES
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.console.views import cluster, jobs, listing
from lockstep.console.views.cluster import NodeRow
from lockstep.console.views.job_list import JobList
from lockstep.console.views.kinds import KINDS, Kind
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.kube.silent_parts import warnings

PARTS: Final = "parts"
"""What listeners are told of as a kind when a part of Lockstep stops or runs again."""
LOOK_AT_PARTS: Final = 5.0
"""Seconds between two looks whether all parts run."""
SYNC_SECONDS: Final = 20.0
BY_JOB: Final = "job"
BY_NAME: Final = "about"
BY_NODE: Final = "node"

Listener = Callable[[str, str, str], None]
"""Takes the kind of what changed, its namespace, and the job or object that it belongs to."""


class Collection:
    """The rows of one kind, kept sorted, as its informer tells them."""

    def __init__(self, client: Client, kind: Kind, tell: Listener) -> None:
        self.kind = kind
        self.informer: Informer[AnyObject] = Informer(client, kind.resource)
        self.informer.optional = True
        self.rows = listing.rows(kind.columns)
        self._tell = tell
        self.informer.subscribe(self._on_change)

    def namespaces(self) -> set[str]:
        """Return the namespaces that have objects of the kind."""
        return {row.namespace for row in self.rows.rows.values()}

    def _on_change(self, change: Change[AnyObject]) -> None:
        meta = change.object.metadata
        key = listing.key_of(meta.namespace, meta.name)
        if change.new is None:
            self.rows.remove(key)
        else:
            self.rows.put(key, listing.row(self.kind, change.new))
        self._tell(self.kind.resource.kind, meta.namespace, meta.name)


class ClusterCache:
    """Informers with the console's own account, and rows that are kept sorted."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.jobs = Informer(client, TRAINING_JOBS, transform=jobs.slim)
        self.gangs = Informer(client, GANGS)
        self.pods = Informer(client, PODS, indices={BY_JOB: _job_of, BY_NODE: _node_of})
        self.events = Informer(client, EVENTS, indices={BY_NAME: _about})
        self.nodes = Informer(client, NODES)
        self.queues = Informer(client, QUEUES)
        self.leases = Informer(client, LEASES, label_selector=JOB_LABEL, indices={BY_JOB: _job_of})
        self.usage = Informer(client, DEVICE_USAGES)
        self.health = Informer(client, NODE_HEALTHS)
        self.topologies = Informer(client, TOPOLOGIES)
        for one in (self.queues, self.usage, self.health, self.topologies):
            one.optional = True
        self.job_list = JobList()
        self.collections: dict[str, Collection] = {}
        self.silent = ""
        """Which parts of Lockstep do not run, in words; empty where all do."""
        self._parts: asyncio.Task[None] | None = None
        self._listeners: set[Listener] = set()
        self._tasks: dict[Informer[Any], asyncio.Task[None]] = {}
        self._nodes: dict[str, NodeRow | None] = {}
        self._subscribe()

    def _subscribe(self) -> None:
        self.jobs.subscribe(self._on_job)
        self.gangs.subscribe(self._on_gang)
        self.pods.subscribe(self._on_pod)
        self.events.subscribe(self._on_event)
        self.nodes.subscribe(self._on_node)
        self.usage.subscribe(self._on_node)
        self.health.subscribe(self._on_node)
        self.topologies.subscribe(self._on_topology)
        self.queues.subscribe(lambda change: self._tell("Queue", "", change.object.metadata.name))
        self.leases.subscribe(self._on_lease)

    async def ready(self) -> bool:
        """Read what every page shows, from the first call on; tell whether that is done."""
        if self._parts is None:
            self._parts = asyncio.create_task(self._follow_parts())
        return await self._read(self.jobs, self.gangs, self.pods, self.events)

    async def cluster_ready(self) -> bool:
        """Read nodes and queues too; tell whether that is done."""
        more = (self.nodes, self.queues, self.usage, self.health, self.topologies)
        return await self.ready() and await self._read(*more)

    async def collection(self, word: str) -> Collection | None:
        """Return the rows of a kind of ``KINDS``; None where they cannot be read in time."""
        found = self.collections.get(word)
        if found is None:
            found = Collection(self._client, KINDS[word], self._tell)
            self.collections[word] = found
        return found if await self._read(found.informer) else None

    async def _follow_parts(self) -> None:
        while True:
            found = " ".join(await warnings(self._client))
            if found != self.silent:
                self.silent = found
                self._tell(PARTS, "", "")
            await asyncio.sleep(LOOK_AT_PARTS)

    async def reports(self) -> bool:
        """Read what launchers report of their ranks; tell whether that is done."""
        return await self._read(self.leases)

    async def _read(self, *informers: Informer[Any]) -> bool:
        for one in informers:
            if one not in self._tasks or self._tasks[one].done():
                self._tasks[one] = asyncio.create_task(one.run())
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
        return next((one.problem for one in self._tasks if one.problem), "")

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* at each change; return what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def namespaces(self) -> set[str]:
        """Return the namespaces that have pods or jobs."""
        return {p.metadata.namespace for p in self.pods} | self.job_list.namespaces()

    def pods_of(self, namespace: str, job: str) -> list[Pod]:
        """Return the pods of a job."""
        return self.pods.by_index(BY_JOB, f"{namespace}/{job}")

    def events_about(self, namespace: str, names: Iterable[str]) -> list[Event]:
        """Return what was told of the objects of these names."""
        return [e for name in names for e in self.events.by_index(BY_NAME, f"{namespace}/{name}")]

    def node(self, name: str) -> NodeRow | None:
        """Return the row of a node; None where it is gone."""
        found = self._nodes.get(name)
        if found is None and (node := self.nodes.get("", name)) is not None:
            found = cluster.row(
                node,
                self.pods.by_index(BY_NODE, name),
                self.usage.get("", name),
                self.health.get("", name),
                self.tiers(),
            )
            self._nodes[name] = found
        return found

    def node_rows(self) -> list[NodeRow]:
        """Return the rows of all nodes, by name."""
        names = sorted(node.metadata.name for node in self.nodes)
        return [row for name in names if (row := self.node(name)) is not None]

    def tiers(self) -> tuple[str, ...]:
        """Return the labels by which nodes stand together, the widest first."""
        chosen = self.topologies.get("", "default")
        if chosen is None:
            return cluster.TIERS
        labels = tuple(tier.label for tier in chosen.spec.tiers)
        return tuple(one for one in labels if one != "kubernetes.io/hostname")

    async def close(self) -> None:
        """Stop following the server."""
        tasks = [*self._tasks.values(), *([self._parts] if self._parts is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_job(self, change: Change[TrainingJob]) -> None:
        meta = change.object.metadata
        key = jobs.key_of(meta.namespace, meta.name)
        if change.new is None:
            self.job_list.remove(key)
        else:
            gang = self.gangs.get(meta.namespace, meta.name)
            self.job_list.put(key, jobs.row(change.new, gang))
        self._tell("TrainingJob", meta.namespace, meta.name)

    def _on_gang(self, change: Change[Gang]) -> None:
        meta = change.object.metadata
        job = self.jobs.get(meta.namespace, meta.name)
        if job is not None:
            self.job_list.put(jobs.key_of(meta.namespace, meta.name), jobs.row(job, change.new))
        self._tell("Gang", meta.namespace, meta.name)

    def _on_pod(self, change: Change[Pod]) -> None:
        meta = change.object.metadata
        for pod in filter(None, (change.old, change.new)):
            self._forget_node(pod.spec.node_name)
        self._tell("Pod", meta.namespace, meta.labels.get(JOB_LABEL) or meta.name)

    def _on_event(self, change: Change[Event]) -> None:
        event = change.object
        self._tell("Event", event.metadata.namespace, event.involved_object.name)

    def _on_node(self, change: Change[Any]) -> None:
        self._forget_node(change.object.metadata.name)

    def _on_topology(self, change: Change[Any]) -> None:
        for name in list(self._nodes):
            self._forget_node(name)

    def _on_lease(self, change: Change[Any]) -> None:
        meta = change.object.metadata
        self._tell("Lease", meta.namespace, meta.labels.get(JOB_LABEL, ""))

    def _forget_node(self, name: str) -> None:
        if name:
            self._nodes[name] = None
            if self.nodes.get("", name) is None:
                self._nodes.pop(name)
            self._tell("Node", "", name)

    def _tell(self, kind: str, namespace: str, name: str) -> None:
        for listener in tuple(self._listeners):
            listener(kind, namespace, name)


def _job_of(obj: Any) -> list[str]:
    job = obj.metadata.labels.get(JOB_LABEL)
    return [f"{obj.metadata.namespace}/{job}"] if job else []


def _node_of(pod: Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def _about(event: Event) -> list[str]:
    return [f"{event.metadata.namespace}/{event.involved_object.name}"]
