"""A new leader reads all pods afresh while its informers go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry
from tests.support.apiserver import ApiServer
from tests.support.scheduler import add_nodes, pod_body
from tests.support.waiting import eventually

from lockstep.api.core import PODS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.connection import default_transport
from lockstep.kube.crds import ensure_crds
from lockstep.kube.credentials import Credential
from lockstep.kube.transport import Request, Response, Stream
from lockstep.runtime.manager import Manager
from lockstep.scheduler.event_handlers import WATCHED, EventHandlers
from lockstep.scheduler.loop import Scheduler
from lockstep.scheduler.metrics import Metrics


@dataclass(frozen=True)
class Gate:
    """Where the answers to lists of pods wait."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)


class SlowLists:
    """A transport on which the answers to lists of pods wait at a gate."""

    def __init__(self, config: ClusterConfig, credential: Credential, gate: Gate) -> None:
        self._inner = default_transport(config, credential)
        self._gate = gate

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if request.method == "GET" and request.target.partition("?")[0] == PODS.path():
            self._gate.answered.set()
            await self._gate.go.wait()
        return response

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def close(self) -> None:
        await self._inner.close()


@contextlib.asynccontextmanager
async def following(manager: Manager) -> AsyncIterator[EventHandlers]:
    """Run the informers that the scheduler decides by, as one does that does not lead yet."""
    feed = EventHandlers(manager)
    informers = [feed.informer(res) for res in WATCHED]
    tasks = [asyncio.create_task(one.run()) for one in informers]
    try:
        for one in informers:
            await one.wait_synced()
        yield feed
    finally:
        await end(tasks)


async def end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def leading(manager: Manager, feed: EventHandlers) -> AsyncIterator[None]:
    """Let a term begin now, later than the informers."""
    metrics = Metrics(CollectorRegistry())
    scheduler = Scheduler(manager.client, feed, manager.recorder(), metrics)
    term = asyncio.create_task(scheduler.run(asyncio.get_running_loop().time()))
    try:
        yield
    finally:
        await end([term])


async def furnish(user: Client) -> None:
    """Make a node that one pod has for itself."""
    await ensure_crds(user)
    await add_nodes(user, ["n"])
    await user.create(PODS, pod_body("leaves", nodeName="n"))


async def has_the_node(user: Client, name: str) -> None:
    async def bound() -> bool:
        return (await user.get(PODS, name, "default")).spec.node_name == "n"

    await eventually(bound, what=f"{name} has the node")


async def test_what_goes_while_a_new_leader_reads_leaves_its_room(any_server: ApiServer) -> None:
    gate, config = Gate(), ClusterConfig.load(any_server.kubeconfig)
    slow = Client(config, transport=partial(SlowLists, gate=gate))
    async with any_server.client() as user, slow as client:
        await furnish(user)
        manager = Manager(client, name="standby")
        gate.go.set()
        async with following(manager) as feed:
            gate.go.clear()
            gate.answered.clear()
            async with leading(manager, feed):
                await gate.answered.wait()
                await user.delete(PODS, "leaves", "default", grace_seconds=0)
                await eventually(lambda: feed.informer(PODS).get("default", "leaves") is None)
                gate.go.set()
                await user.create(PODS, pod_body("comes"))
                await has_the_node(user, "comes")


async def test_a_new_leader_knows_what_its_informers_have_not_seen(any_server: ApiServer) -> None:
    async with any_server.client() as user:
        await furnish(user)
        manager = Manager(user, name="standby")
        async with following(manager) as feed:
            pass  # from here on they bring nothing more
        await user.delete(PODS, "leaves", "default", grace_seconds=0)
        await user.create(PODS, pod_body("comes"))
        async with leading(manager, feed):
            await has_the_node(user, "comes")
