"""The part of the kubelet's interface that serves containers' logs to the API server."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
from aiohttp import web

from lockstep.nodes.process import logs
from lockstep.nodes.process.certificates import may_read
from lockstep.nodes.process.kept_logs import LogEntry


class NoLog(Exception):
    """There is no such log; *waiting* tells that there may be one later."""

    def __init__(self, message: str, *, waiting: bool = False) -> None:
        super().__init__(message)
        self.waiting = waiting


class Shelf(Protocol):
    """Where the logs of the node's containers are found."""

    def find(
        self, namespace: str, pod: str, container: str, *, previous: bool
    ) -> tuple[Path, Callable[[], bool]]:
        """Return a container's log, and whether more may be written to it.

        Raises:
            NoLog: when there is none.
        """

    def of_job(self, namespace: str, job: str) -> list[LogEntry]:
        """Return the pods of a job whose logs are here, those of pods that are gone too."""

    def find_by_uid(
        self, namespace: str, pod: str, uid: str, container: str, *, previous: bool, after: float
    ) -> tuple[Path, Callable[[], bool]]:
        """Return the log of one certain pod, which may be gone, and came no sooner than *after*.

        Raises:
            NoLog: when there is none.
        """


def parse(params: Mapping[str, str], now: datetime) -> logs.Query:
    """Return what a request asks for.

    Raises:
        ValueError: when a parameter is not of its form.
    """
    since = None
    if "sinceSeconds" in params:
        since = now - timedelta(seconds=int(params["sinceSeconds"]))
    elif "sinceTime" in params:
        since = datetime.fromisoformat(params["sinceTime"].replace("Z", "+00:00"))
    tail = params.get("tailLines")
    limit = params.get("limitBytes")
    return logs.Query(
        follow=flag(params, "follow"),
        tail=None if tail is None else max(0, int(tail)),
        since=since,
        timestamps=flag(params, "timestamps"),
        limit_bytes=None if limit is None else int(limit),
    )


def flag(params: Mapping[str, str], name: str) -> bool:
    """Return whether a parameter is set."""
    return params.get(name, "false").lower() in ("true", "1")


def _after(request: web.Request) -> float:
    """Return when the namespace was made: older pods are those of another one of its name."""
    return float(request.query.get("after", 0))


def admit(request: web.Request) -> None:
    """Let the API server and administrators pass.

    Raises:
        HTTPForbidden: when it is another user.
    """
    transport = request.transport
    if transport is None or not may_read(transport.get_extra_info("peercert") or {}):
        raise web.HTTPForbidden(text="containers are for the API server and administrators\n")


class LogServer:
    """Serves ``/containerLogs`` on loopback, over TLS, to those who may read them."""

    def __init__(
        self, shelf: Shelf, context: ssl.SSLContext, address: str, more: Iterable[web.RouteDef] = ()
    ) -> None:
        self._shelf, self._context, self._address = shelf, context, address
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._serve)
        app.router.add_get("/keptLogs/{namespace}/{job}", self._list)
        app.router.add_get("/keptLogs/{namespace}/{pod}/{container}", self._serve_kept)
        app.router.add_get("/healthz", self._healthy)
        app.add_routes(more)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> int:
        """Begin to serve; return the port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address, 0, ssl_context=self._context)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop serving."""
        await self._runner.cleanup()

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        admit(request)
        part = request.match_info
        place = part["namespace"], part["pod"], part["container"]
        previous = flag(request.query, "previous")
        return await self._send(request, lambda: self._shelf.find(*place, previous=previous))

    async def _serve_kept(self, request: web.Request) -> web.StreamResponse:
        admit(request)
        part, uid = request.match_info, request.query.get("uid", "")
        place = part["namespace"], part["pod"], uid, part["container"]
        previous, after = flag(request.query, "previous"), _after(request)
        find = partial(self._shelf.find_by_uid, *place, previous=previous, after=after)
        return await self._send(request, find)

    async def _list(self, request: web.Request) -> web.Response:
        admit(request)
        part = request.match_info
        listed = self._shelf.of_job(part["namespace"], part["job"])
        found = [one for one in listed if one.started >= _after(request)]
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    async def _send(
        self, request: web.Request, find: Callable[[], tuple[Path, Callable[[], bool]]]
    ) -> web.StreamResponse:
        try:
            query = parse(request.query, datetime.now(UTC))
            log, running = find()
        except ValueError as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        except NoLog as error:
            kind = web.HTTPBadRequest if error.waiting else web.HTTPNotFound
            raise kind(text=f"{error}\n") from error
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        # A reader that leaves before the end of the log is no fault of this server.
        with suppress(ConnectionError):
            await response.prepare(request)
            async for piece in logs.read(log, query, running):
                await response.write(piece)
            await response.write_eof()
        return response
