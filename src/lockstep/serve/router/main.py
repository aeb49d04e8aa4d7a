"""The process ``lockstep router``."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from lockstep.api.core import PODS
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.serving import ROUTES, Route, RouterSpec
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.informer import Informer
from lockstep.serve.router.lane import Lane
from lockstep.serve.router.prober import Prober
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.reporter import Reporter
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table

log = logging.getLogger(__name__)

FORGET_EVERY: Final = 60.0
"""Seconds between two looks for connections to replicas that are gone."""
INSIDE: Final = tuple(f"127.0.0.{number}" for number in range(80, 120))
"""Addresses of the host on one of which the names of services lead to the router."""
INSIDE_PORT: Final = 80


class NotLoopback(ValueError):
    """The router was told to listen where anybody could reach it."""


async def run(
    *,
    kubeconfig: Path | None,
    host: str = "127.0.0.1",
    port: int,
    domain: str = "",
    name: str = "",
    ready: Callable[[str], None],
) -> None:
    """Carry requests until cancelled.

    Raises:
        NotLoopback: when *host* is no loopback address.
        OSError: when *port* is taken.
    """
    if not ip_address(host).is_loopback:
        raise NotLoopback(
            f"--host {host}: requests carry no proof of who sends them; use a loopback address, "
            "and put what asks for it in front"
        )
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        async with contextlib.AsyncExitStack() as stack:
            await _Router(client, domain).run(stack, host, port, name, ready)


class _Router:
    """The parts of the router, put together."""

    def __init__(self, client: Client, domain: str) -> None:
        self.client, self.domain = client, domain
        self.table = Table(domain, self._changed)
        self.prober = Prober(self.table)
        self.sorting = Sorting(self.table.lanes)
        self.reporter: Reporter | None = None
        self.clients: set[ClientSide] = set()
        self.grpc_wanted = asyncio.Event()

    def _changed(self, lane: Lane, urgent: bool) -> None:
        if self.reporter is not None:
            self.reporter.changed(lane, urgent)
        if lane.waiting:
            self.prober.look(lane)

    def _client_side(self) -> ClientSide:
        return ClientSide(self.table.find, self.table.unknown, self.clients, self.sorting)

    async def run(
        self,
        stack: contextlib.AsyncExitStack,
        host: str,
        port: int,
        name: str,
        ready: Callable[[str], None],
    ) -> None:
        """Listen, follow routes and replicas, report; until cancelled."""
        routes = Informer(self.client, ROUTES)
        replicas = Informer(self.client, PODS, label_selector=ROUTE_LABEL)
        routes.subscribe(self.table.on_route)
        replicas.subscribe(self.table.on_pod)
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(one.run()) for one in (routes, replicas)]
            routes.subscribe(self._has_grpc)
            await asyncio.gather(routes.wait_synced(), replicas.wait_synced())
            gc.freeze()
            spec = await self._listen(stack, host, port)
            self.reporter = Reporter(self.client, name or _host(), spec)
            ready(f"ready {spec.url}")
            following.append(group.create_task(self._grpc(host, spec)))
            try:
                await self.reporter.run()
            finally:
                self.prober.close()
                self.sorting.close()
                for task in following:
                    task.cancel()

    def _has_grpc(self, change: Change[Route]) -> None:
        if change.new is not None and any(one.grpc_port for one in change.new.spec.backends):
            self.grpc_wanted.set()

    async def _grpc(self, host: str, spec: RouterSpec) -> None:
        """Take gRPC once a service speaks it; until then its library takes no memory."""
        await self.grpc_wanted.wait()
        try:
            from lockstep.serve.router.grpc_calls import GrpcCalls, find
        except ImportError:
            log.warning("gRPC is not carried: pip install 'lockstep[serve]'")
            return
        calls = GrpcCalls(lambda stated, name: find(self.table.lanes, stated, name))
        beside = int(spec.url.rpartition(":")[2]) + 1
        server, port = await calls.listen(host, beside)
        try:
            if self.reporter is not None:
                await self.reporter.change({"grpcAddress": f"{host}:{port}"})
            while True:
                await asyncio.sleep(FORGET_EVERY)
                await calls.forget(
                    (one.pool.host, one.grpc_port)
                    for lane in self.table.lanes.values()
                    for one in lane.replicas.values()
                )
        finally:
            await server.stop(1.0)

    async def _listen(self, stack: contextlib.AsyncExitStack, host: str, port: int) -> RouterSpec:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._client_side, host, port, backlog=4096)
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        address, inside = host, port
        for candidate in INSIDE:
            # Without the right to a low port, or with none free, names lead to the other one.
            try:
                low = await loop.create_server(self._client_side, candidate, INSIDE_PORT)
            except PermissionError:
                break
            except OSError:
                continue
            stack.callback(low.close)
            address, inside = candidate, INSIDE_PORT
            break
        shown = f"[{host}]" if ":" in host else host
        return RouterSpec(
            url=f"http://{shown}:{port}", domain=self.domain, address=address, port=inside
        )


def _host() -> str:
    """Return the host's name as far as it can name an object."""
    return re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-") or "router"
