"""Each router's own object: where it listens, what it carries."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any, Final

from lockstep.api.core import NAMESPACES
from lockstep.api.merge import difference
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.serving import ROUTERS, RouteLoad, RouterSpec
from lockstep.api.timestamp import show
from lockstep.api.wire import convert, to_builtins
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, ApiError, NotFound
from lockstep.serve.router.lane import Lane

log = logging.getLogger(__name__)

PAUSE: Final = 0.5
"""Least seconds between two reports that nothing hastens."""
RENEW: Final = 4.0
"""Most seconds between two reports."""
FORGET: Final = 120.0
"""Seconds without a request after which a route is left out."""


class Reporter:
    """Writes the router's object."""

    def __init__(self, client: Client, name: str, spec: RouterSpec) -> None:
        self._client, self._name, self._spec = client, name, spec
        self._lanes: dict[str, tuple[float, Lane]] = {}
        self._written: dict[str, Any] = {}
        self._dirty = False
        self._urgent = asyncio.Event()

    def changed(self, lane: Lane, urgent: bool) -> None:
        """Note that the load of *lane* changed."""
        self._lanes[lane.key] = (time.monotonic(), lane)
        self._dirty = True
        if urgent:
            self._urgent.set()

    async def change(self, spec: dict[str, Any]) -> None:
        """Say in the router's object that fields of its *spec* are others now."""
        self._spec = convert({**to_builtins(self._spec), **spec}, RouterSpec)
        with contextlib.suppress(NotFound):
            await self._client.patch(ROUTERS, self._name, {"spec": spec}, SYSTEM_NAMESPACE)

    async def run(self) -> None:
        """Write reports until cancelled; then take the router's object away."""
        try:
            await self._create()
            while True:
                await self._report()
                await self._wait()
        finally:
            with contextlib.suppress(ApiError, asyncio.CancelledError):
                async with asyncio.timeout(3.0):
                    await self._client.delete(ROUTERS, self._name, SYSTEM_NAMESPACE)

    async def _wait(self) -> None:
        """Wait until there is something to report; what is urgent does not wait."""
        self._urgent.clear()
        until = time.monotonic() + RENEW
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                await self._urgent.wait()
        while not self._dirty and time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    await self._urgent.wait()

    async def _create(self) -> None:
        body = {"metadata": {"name": self._name}, "spec": to_builtins(self._spec)}
        while True:
            try:
                await self._client.create(ROUTERS, body, SYSTEM_NAMESPACE)
            except AlreadyExists:
                # Of a life before: its counts are not ours.
                with contextlib.suppress(NotFound):
                    await self._client.delete(ROUTERS, self._name, SYSTEM_NAMESPACE)
            except NotFound:
                await self._client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
            else:
                return

    def _loads(self) -> dict[str, RouteLoad]:
        now = time.monotonic()
        for key, (at, lane) in list(self._lanes.items()):
            if now - at > FORGET and not lane.in_flight and not lane.waiting:
                del self._lanes[key]
        return {key: lane.load() for key, (_, lane) in self._lanes.items()}

    async def _report(self) -> None:
        self._dirty = any(lane.in_flight or lane.waiting for _, lane in self._lanes.values())
        for _, lane in self._lanes.values():
            lane.expire()
        status = {
            "renewedAt": show(time.time()),
            "routes": {
                key: {"requests": 0, **to_builtins(load)} for key, load in self._loads().items()
            },
        }
        patch = difference(self._written, status)
        try:
            await self._client.patch(
                ROUTERS, self._name, {"status": patch}, SYSTEM_NAMESPACE, subresource="status"
            )
        except NotFound:
            self._written = {}
            await self._create()
        except ApiError as error:
            # What was not told is told with the next report.
            log.warning("the load could not be reported: %s", error)
        else:
            self._written = status
