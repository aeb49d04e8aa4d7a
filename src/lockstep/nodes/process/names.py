"""Keeping the names that resolve inside the node's pods: their hosts files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from lockstep.api.core import PODS, SERVICES, Pod, Service
from lockstep.api.names import LEADS_TO_ANNOTATION
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.nodes.process import spec
from lockstep.nodes.process.facts import PodFacts
from lockstep.nodes.process.home import PodHome, rewrite
from lockstep.nodes.process.hosts import Backing, Peer, hosts_file
from lockstep.nodes.process.spec import HostAlias

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod of this node and where its hosts file is."""

    peer: Peer
    aliases: tuple[HostAlias, ...]
    file: Path


def resident(pod: spec.Pod, facts: PodFacts, home: PodHome, hostname: str) -> Resident:
    """Return a pod of this node as others find it by name."""
    meta = pod.metadata
    known = [facts.of(one.name) for one in pod.spec.containers]
    peer = Peer(
        meta.namespace,
        meta.name,
        home.record.address,
        meta.labels,
        hostname,
        pod.spec.subdomain,
        all(one.running and one.ready for one in known),
    )
    return Resident(peer, tuple(pod.spec.host_aliases), home.hosts)


def backing(service: Service) -> Backing:
    """Return *service* as far as names go."""
    meta, spec = service.metadata, service.spec
    return Backing(
        meta.namespace,
        meta.name,
        spec.selector,
        spec.cluster_ip == "None",
        spec.publish_not_ready_addresses,
        meta.annotations.get(LEADS_TO_ANNOTATION, ""),
    )


def peer(pod: Pod) -> Peer:
    """Return a pod of any node as far as names go; one that is over has no address."""
    meta = pod.metadata
    over = pod.status.phase in ("Succeeded", "Failed")
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return Peer(
        meta.namespace,
        meta.name,
        "" if over else pod.status.pod_ip,
        meta.labels,
        pod.spec.hostname,
        pod.spec.subdomain,
        ready,
    )


def server_names(server: str) -> list[tuple[str, str]]:
    """Return the names of the API server inside pods, where its address is known."""
    host = urlsplit(server).hostname or ""
    try:
        address = str(ip_address(host))
    except ValueError:
        return []
    names = ("kubernetes.default.svc", "kubernetes.default", "kubernetes.default.svc.cluster.local")
    return [(address, name) for name in names]


class Names:
    """Follows services, and the pods behind those that name a pod of this node.

    The pods of other nodes are followed namespace by namespace, and only where a service selects
    a pod of this node: a cluster may have many pods that no pod here will ever call.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._extra = server_names(client.config.server)
        self._residents: dict[str, Resident] = {}
        self._services = Informer(client, SERVICES)
        self._services.subscribe(self._on_service)
        self._spaces: dict[str, Informer[Pod]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._due = False

    async def run(self) -> None:
        """Follow the services until cancelled."""
        try:
            await self._services.run()
        finally:
            for task in self._tasks:
                task.cancel()

    async def wait_synced(self) -> None:
        """Wait until the services are known."""
        await self._services.wait_synced()

    def put(self, uid: str, resident: Resident) -> None:
        """Note a pod of this node, or that it changed, and write its file."""
        if self._residents.get(uid) == resident and resident.file.exists():
            return
        self._residents[uid] = resident
        self._write([resident])
        self._changed()

    def drop(self, uid: str) -> None:
        """Forget a pod of this node."""
        if self._residents.pop(uid, None) is not None:
            self._changed()

    def _on_service(self, _: Change[Service]) -> None:
        self._changed()

    def _on_pod(self, change: Change[Pod]) -> None:
        before = peer(change.old) if change.old else None
        after = peer(change.new) if change.new else None
        if before != after:
            self._changed()

    def _changed(self) -> None:
        """Write all files soon, once for all changes that come together."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._refresh)

    def _refresh(self) -> None:
        self._due = False
        self._follow_namespaces()
        self._write(self._residents.values())

    def _follow_namespaces(self) -> None:
        here = {one.peer.namespace for one in self._residents.values()}
        for service in map(backing, self._services):
            space = service.namespace
            if space not in here or space in self._spaces or not self._selects_here(service):
                continue
            informer = Informer(self._client, PODS, namespace=space)
            informer.subscribe(self._on_pod)
            self._spaces[space] = informer
            task = asyncio.ensure_future(informer.run())
            self._tasks.add(task)

    def _selects_here(self, service: Backing) -> bool:
        return bool(service.selector) and any(
            service.namespace == one.peer.namespace
            and service.selector.items() <= dict(one.peer.labels).items()
            for one in self._residents.values()
        )

    def _write(self, residents: Iterable[Resident]) -> None:
        own = {(one.peer.namespace, one.peer.name): one.peer for one in self._residents.values()}
        others = {
            (pod.metadata.namespace, pod.metadata.name): peer(pod)
            for informer in self._spaces.values()
            for pod in informer
        }
        everyone = list({**others, **own}.values())
        services = [backing(one) for one in self._services]
        for one in residents:
            text = hosts_file(one.peer, one.aliases, everyone, services, self._extra)
            try:
                rewrite(one.file, text)
            except OSError as error:
                log.warning("cannot write %s: %s", one.file, error)
