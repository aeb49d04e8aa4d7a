"""The process ``lockstep gateway``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web

from lockstep.api.core import PODS
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.compat.kubeflow.notebook import NAME_LABEL, NOTEBOOKS
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.crds import ensure_crds
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.informer import Informer
from lockstep.notebooks.gateway.access import Access
from lockstep.notebooks.gateway.kernels import KernelApi
from lockstep.notebooks.master import Master

log = logging.getLogger(__name__)

MOST_BODY: Final = 1 << 20
"""Bytes of the largest request."""


class NotLoopback(ValueError):
    """The gateway was told to listen in the clear where others could hear tokens."""


async def run(
    *,
    kubeconfig: Path | None,
    host: str = "127.0.0.1",
    port: int,
    insecure: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serve kernels until cancelled.

    Raises:
        NotLoopback: when *host* is no loopback address and that is not asked for as *insecure*.
        OSError: when *port* is taken.
    """
    if not ip_address(host).is_loopback and not insecure:
        raise NotLoopback(
            f"--host {host}: tokens would travel in the clear; use a loopback address, or put "
            "what speaks TLS in front and say --insecure"
        )
    async with (
        Client(ClusterConfig.load(kubeconfig)) as client,
        aiohttp.ClientSession(auto_decompress=True) as http,
    ):
        await ensure_crds(client)
        await _serve(client, http, host, port, ready)


async def _serve(
    client: Client, http: aiohttp.ClientSession, host: str, port: int, ready: Callable[[str], None]
) -> None:
    kernels, environments = Informer(client, KERNELS), Informer(client, ENVIRONMENTS)
    notebooks = Informer(client, NOTEBOOKS, optional=True)
    pods = Informer(client, PODS, label_selector=NAME_LABEL)
    master = Master(client)
    access = Access(client, notebooks, pods, master)
    api = KernelApi(client, access, master, kernels, environments, http)
    kernels.subscribe(lambda change: api.changed(change.new or change.old))
    app = web.Application(middlewares=[_told, _no_pages], client_max_size=MOST_BODY)
    app.add_routes(api.routes())
    following: list[Informer[Any]] = [kernels, environments, notebooks, pods]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run()) for one in following]
        await asyncio.gather(*(one.wait_synced() for one in following))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            bound = runner.addresses[0][1]
            ready(f"ready http://{host}:{bound}")
            await asyncio.Event().wait()
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await runner.cleanup()


@web.middleware
async def _told(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Say what went wrong with the API server instead of hiding it."""
    try:
        return await handler(request)
    except NotFound as error:
        raise web.HTTPNotFound(text=f'{{"message": "{error.status}"}}') from error
    except ApiError as error:
        log.warning("%s %s: %s", request.method, request.path, error)
        raise web.HTTPServiceUnavailable(text="the API server cannot be used now\n") from error


@web.middleware
async def _no_pages(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse requests of pages in browsers: kernels are for programs that hold a token.

    Clients in Python name the gateway itself as the origin of their WebSockets.
    """
    origins = request.headers.getall("Origin", [])
    own = {f"{scheme}://{request.headers.get('Host', '')}" for scheme in ("http", "https")}
    if "Sec-Fetch-Site" in request.headers or any(one not in own for one in origins):
        text = '{"message": "pages of browsers are not served here; open notebooks in the console"}'
        raise web.HTTPForbidden(text=text, content_type="application/json")
    response = await handler(request)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response
