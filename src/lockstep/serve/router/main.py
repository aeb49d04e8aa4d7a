"""The process ``lockstep router``."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from lockstep.api.core import PODS
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.serving import ROUTES, Route, RouterSpec
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.informer import Informer
from lockstep.runtime.endpoints import Endpoints, Ports
from lockstep.runtime.health import Health
from lockstep.serve.router.authentication import BadTokens, TokenAuthenticator
from lockstep.serve.router.guard import Guard, Inside
from lockstep.serve.router.lane import Lane
from lockstep.serve.router.prober import Prober
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.reporter import Reporter
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table

log = logging.getLogger(__name__)

FORGET_EVERY: Final = 60.0
"""Seconds between two looks for connections to replicas that are gone."""
READ_TOKENS_EVERY: Final = 10.0
"""Seconds between two looks at the file of tokens."""
INSIDE: Final = tuple(f"127.0.0.{number}" for number in range(80, 120))
"""Addresses of the host on one of which the names of services lead to the router."""
INSIDE_PORT: Final = 80


async def run(
    *,
    kubeconfig: Path | None,
    host: str = "127.0.0.1",
    port: int,
    domain: str = "",
    name: str = "",
    guard: Guard | None = None,
    inside: Inside | None = None,
    ports: Ports | None = None,
    ready: Callable[[str], None],
) -> None:
    """Carry requests until cancelled.

    With *inside* pods of a cluster come there, through a Service.

    Raises:
        NotSafe: when *host* is no loopback address and *guard* asks for no token.
        BadTokens: when the file of tokens cannot be used.
        OSError: when *port* is taken.
    """
    guard = guard or Guard()
    guard.check(host)
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        await ensure_crds(client)
        async with contextlib.AsyncExitStack() as stack:
            router = _Router(client, domain, guard, inside)
            health = Health(router.problems, router.sorting.figures.page)
            endpoints = Endpoints(ports or Ports(), health, client)
            await endpoints.start()
            stack.push_async_callback(endpoints.close)
            await router.run(stack, host, port, name, ready)


class _Router:
    """The parts of the router, put together."""

    def __init__(self, client: Client, domain: str, guard: Guard, inside: Inside | None) -> None:
        self.client, self.domain, self.guard, self.inside = client, domain, guard, inside
        self.authenticator = TokenAuthenticator(guard.tokens) if guard.tokens is not None else None
        self.table = Table(domain, self._changed)
        self.prober = Prober(self.table)
        self.sorting = Sorting(self.table.lanes)
        self.reporter: Reporter | None = None
        self.clients: set[ClientSide] = set()
        self.grpc_wanted = asyncio.Event()

    def problems(self) -> list[str]:
        """Return what keeps the router from carrying requests."""
        return [] if self.reporter is not None else ["the routes are not known yet"]

    def _changed(self, lane: Lane, urgent: bool) -> None:
        if self.reporter is not None:
            self.reporter.changed(lane, urgent)
        if lane.waiting:
            self.prober.look(lane)

    def _client_side(self) -> ClientSide:
        """Return what takes a connection from inside: the names of services, on loopback."""
        return ClientSide(self.table.find, self.table.unknown, self.clients, self.sorting)

    def _guarded(self) -> ClientSide:
        """Return what takes a connection at the router's own address."""
        return ClientSide(
            self.table.find, self.table.unknown, self.clients, self.sorting, self.authenticator
        )

    async def _watch_tokens(self, authenticator: TokenAuthenticator) -> None:
        """Take up tokens that come, and forget those that go."""
        while True:
            await asyncio.sleep(READ_TOKENS_EVERY)
            try:
                if authenticator.read():
                    log.info("the tokens were read again")
            except BadTokens as error:
                log.warning("%s; those before still hold", error)

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
            if self.authenticator is not None:
                following.append(group.create_task(self._watch_tokens(self.authenticator)))
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
        inside = self.inside
        tokens, pair = (self.authenticator, self.guard.pair()) if inside is None else (None, None)
        calls = GrpcCalls(lambda stated, name: find(self.table.lanes, stated, name), tokens)
        if inside is None:
            server, port = await calls.listen(host, int(spec.url.rpartition(":")[2]) + 1, pair)
        else:
            server, port = await calls.listen(inside.host, inside.port + 1, pair)
        shown = host if inside is None else inside.name
        try:
            if self.reporter is not None:
                await self.reporter.change({"grpcAddress": f"{shown}:{port}"})
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
        tls = self.guard.context()
        server = await loop.create_server(self._guarded, host, port, backlog=4096, ssl=tls)
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        scheme: Literal["http", "https"] = "https" if self.guard.outside_tls else "http"
        if self.inside is not None:
            where, url = self.inside, self.inside.url
            low = await loop.create_server(self._client_side, where.host, where.port, backlog=4096)
            stack.callback(low.close)
            return RouterSpec(url=url, domain=self.domain, scheme=scheme)
        # Without names of its own, what is inside comes as everybody does.
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
            url=f"{scheme}://{shown}:{port}",
            domain=self.domain,
            address=address,
            port=inside,
            scheme=scheme,
        )


def _host() -> str:
    """Return the host's name as far as it can name an object."""
    return re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-") or "router"
