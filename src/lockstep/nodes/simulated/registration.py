"""Putting the nodes of a fleet into the API server, and keeping them alive there."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from lockstep.api import names, quantity
from lockstep.api.containers import Quantity
from lockstep.api.core import LEASES, NAMESPACES, NODES, Node
from lockstep.api.meta import ObjectMeta
from lockstep.api.wire import to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound, Unreachable
from lockstep.nodes.simulated import fleet
from lockstep.nodes.simulated.fleet import SimulatedNode
from lockstep.runtime.status import patch_status, put_condition

log = logging.getLogger(__name__)

T = TypeVar("T")

PARALLEL = 32
LEASE_NAMESPACE = "kube-node-lease"
RENEW_EVERY = 10.0
RENEWALS_PER_SECOND = 150.0
"""Large fleets renew less often, so that their leases cost the server no more than this."""
LEASE_SECONDS = 40
RENEWALS_PER_LEASE = 4
"""How often a lease is renewed while it would still be good."""
STATUS_EVERY = 300.0


def renewal_interval(nodes: int) -> float:
    """Return the seconds between two renewals of a lease in a fleet of so many nodes."""
    return max(RENEW_EVERY, nodes / RENEWALS_PER_SECOND)


def renewal_due(age: float, lease_seconds: float, *, busy: bool) -> bool:
    """Return whether a lease of that *age* is to be renewed now; it is looked at every quarter.

    While the fleet is *busy* every other renewal is left out: a thousand leases cost the server as
    much as a hundred pods a second.
    """
    quarters = age * RENEWALS_PER_LEASE / lease_seconds
    return quarters > (1.5 if busy else 0.5)


async def in_parallel(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do *work* for each item, a bounded number at a time; the first error ends it."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(PARALLEL):
                group.create_task(worker())
    except ExceptionGroup as failed:
        # They all failed at the same thing; the first says what.
        raise failed.exceptions[0] from None


class Registration:
    """The Node and Lease objects of a fleet."""

    def __init__(
        self,
        client: Client,
        nodes: Mapping[str, SimulatedNode],
        busy: Callable[[], bool] = lambda: False,
        present: Collection[str] | None = None,
    ) -> None:
        """*nodes* are registered; *present* are they and the adopted ones, which come and go."""
        self._client = client
        self._nodes = nodes
        self._present = nodes.keys() if present is None else present
        self._busy = busy
        """Whether there is more to do for the nodes' pods than the server can take."""
        self._started = time.time()
        self._changed: dict[str, float] = {}
        """When nodes that died or came back did so last."""
        self._renewed: dict[str, float] = {}
        """When leases were renewed last, on the monotonic clock."""
        interval = renewal_interval(len(nodes))
        self._lease_seconds = max(LEASE_SECONDS, round(RENEWALS_PER_LEASE * interval))
        self._alive = set(nodes)

    async def register(self) -> None:
        """Create the nodes that are missing, and bring those that are there up to date.

        Raises:
            ApiError: when the server refuses one.
        """
        selector = f"{names.NODE_KIND_LABEL}=simulated"
        listing = await self._client.list(NODES, label_selector=selector)
        known = {node.metadata.name: node for node in listing.items}
        await self._lease_namespace()

        async def put(node: SimulatedNode) -> None:
            there = known.get(node.name)
            await self._put(node, there)
            await (self._first_lease if there is None else self.renew)(node.name)

        async def put_surely(node: SimulatedNode) -> None:
            try:
                await put(node)
            except Unreachable as error:
                # The answer to a creation was lost, which the client does not send again by itself.
                if error.reason != "Connection":
                    raise
                await put(node)

        await in_parallel(self._nodes.values(), put_surely)

    async def _lease_namespace(self) -> None:
        try:
            await self._client.get(NAMESPACES, LEASE_NAMESPACE)
        except NotFound:
            with contextlib.suppress(AlreadyExists):
                await self._client.create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})

    async def _put(self, node: SimulatedNode, known: Node | None) -> None:
        now = time.time()
        wanted = fleet.node_object(node, now)
        if known is None:
            try:
                known = await self._client.create(NODES, wanted)
            except AlreadyExists:
                known = await self._client.get(NODES, node.name)
        metadata = wanted["metadata"]
        if not (
            metadata["labels"].items() <= known.metadata.labels.items()
            and metadata["annotations"].items() <= known.metadata.annotations.items()
        ):
            change = {"metadata": {key: metadata[key] for key in ("labels", "annotations")}}
            await self._client.patch(NODES, node.name, change)
        dead = names.FAIL_NODE_ANNOTATION in known.metadata.annotations
        changed = not _same_amounts(known.status.capacity, wanted["status"]["capacity"])
        if changed or not (dead or is_ready(known)):
            await patch_status(self._client, NODES, known.metadata, wanted["status"])
        await self._taint(known)

    async def _taint(self, known: Node) -> None:
        """Put a node's taints right where they are not."""
        wanted = fleet.taints(known)
        if wanted != known.spec.taints:
            change = {"spec": {"taints": to_builtins(wanted)}}
            await self._client.patch(NODES, known.metadata.name, change)

    async def renew(self, name: str) -> None:
        """Renew one node's lease, or create it."""
        try:
            await self._client.patch(LEASES, name, {"spec": self._lease(name)}, LEASE_NAMESPACE)
        except NotFound:
            await self._first_lease(name)
        self._renewed[name] = time.monotonic()

    async def _renew_if_due(self, name: str) -> None:
        age = time.monotonic() - self._renewed.get(name, 0.0)
        if renewal_due(age, self._lease_seconds, busy=self._busy()):
            await self.renew(name)

    async def _first_lease(self, name: str) -> None:
        metadata = {"name": name, "namespace": LEASE_NAMESPACE}
        try:
            await self._client.create(LEASES, {"metadata": metadata, "spec": self._lease(name)})
        except AlreadyExists:
            await self._client.patch(LEASES, name, {"spec": self._lease(name)}, LEASE_NAMESPACE)
        self._renewed[name] = time.monotonic()

    def _lease(self, name: str) -> dict[str, object]:
        return {
            "holderIdentity": name,
            "leaseDurationSeconds": self._lease_seconds,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    async def tell(self, name: str, *, ready: bool, why: str = "") -> None:
        """Write a node's conditions."""
        now = time.time()
        if name not in self._alive:
            self._changed[name] = now
        since = self._changed.get(name, self._started)
        conditions = fleet.conditions(
            ready=ready, why=why or "the simulated node is ready", now=now, since=since
        )
        await put_condition(self._client, NODES, ObjectMeta(name=name), *conditions)

    async def adopt(self, name: str) -> None:
        """Keep a node alive that others have registered, and say that it is ready."""
        await self.renew(name)
        self._alive.add(name)
        await self.tell(name, ready=True)

    async def forget(self, name: str) -> None:
        """Keep a node alive no more that was adopted and has gone, and delete its lease."""
        self.stop(name)
        self._changed.pop(name, None)
        self._renewed.pop(name, None)
        with contextlib.suppress(NotFound):
            await self._client.delete(LEASES, name, LEASE_NAMESPACE)

    def stop(self, name: str) -> None:
        """No longer keep a node alive."""
        self._alive.discard(name)

    def resume(self, name: str) -> None:
        """Keep a node alive again."""
        self._alive.add(name)

    async def run(self) -> None:
        """Renew the leases, and now and then repeat the conditions, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(renewal_interval(len(self._nodes)), self._renew_if_due))
            group.create_task(self._keep(STATUS_EVERY, self._heartbeat))

    async def _heartbeat(self, name: str) -> None:
        await self.tell(name, ready=True)

    async def _keep(self, interval: float, work: Callable[[str], Awaitable[None]]) -> None:
        """Do *work* for each living node once in *interval*, spread out evenly."""
        turns = self._in_turn()

        async def once(name: str) -> None:
            try:
                await work(name)
            except ApiError as error:
                log.warning("node %s: %s", name, error)

        while True:
            size = max(1, len(self._present))
            batch = max(1, round(size / interval / 4))
            await asyncio.sleep(interval * batch / size)
            due = [name for name in itertools.islice(turns, batch) if name in self._alive]
            await in_parallel(due, once)

    def _in_turn(self) -> Iterator[str]:
        """Yield the names of the nodes over and over; nodes may come and go meanwhile."""
        while True:
            yield from list(self._present) or [""]


def _same_amounts(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> bool:
    """Compare by value: servers write quantities in their own way, such as 2Ti for 2048Gi."""
    if one.keys() != other.keys():
        return False
    return all(quantity.parse(str(one[key])) == quantity.parse(str(other[key])) for key in one)


def is_ready(node: Node) -> bool:
    """Return whether a node says that it is ready."""
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
