"""One port of one pod, as one user opened it: the way to it, and whether its user still may."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

from lockstep.api.core import SECRETS
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, PORT, Notebook, prefix
from lockstep.console.rights import Ask
from lockstep.console.sessions import Session
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Forbidden, NotFound, Unauthorized
from lockstep.kube.port_carrying import Port, carry
from lockstep.notebooks.core import dozing, notebook_pod

log = logging.getLogger(__name__)

FORWARD: Final = Ask("create", "", "pods", "", "portforward")
AGAIN: Final = 3.0
"""Seconds after which an open connection asks again whether its user may have it."""
STALE: Final = 9.0
"""Seconds for which the last yes counts while the API server does not answer."""


class Opening(msgspec.Struct, forbid_unknown_fields=True):
    """A notebook, or a port of a pod and the path to begin at."""

    namespace: str
    notebook: str = ""
    pod: str = ""
    port: int = 0
    path: str = "/"


class Ended(Exception):
    """The user's session is over, or the right has gone."""


async def of_notebook(client: Client, given: Opening) -> tuple[Opening, str]:
    """Return where a notebook is served, and the token that its server asks for.

    Raises:
        ApiError: when the user may not read the notebook, or there is none.
    """
    notebook = await client.get(NOTEBOOKS, given.notebook, given.namespace)
    containers = notebook.pod_spec.get("containers") or [{}]
    ports = containers[0].get("ports") or [{}]
    page = "/" if dozing.is_page(notebook) else "/lab"
    path = f"{prefix(notebook.metadata)}{page}" if given.path == "/" else given.path
    pod, port = notebook_pod.pod_name(notebook), int(ports[0].get("containerPort") or PORT)
    token = ""
    try:
        secret = await client.get(SECRETS, notebook_pod.secret_name(notebook), given.namespace)
        token = base64.b64decode(secret.data.get(notebook_pod.PAGE_KEY, "")).decode()
    except (Forbidden, NotFound, ValueError):
        log.info("the page of notebook %s/%s asks for its token", given.namespace, given.notebook)
    return Opening(given.namespace, given.notebook, pod, port, path), token


@dataclass(eq=False)
class App:
    """One port of one pod, as one user opened it."""

    session: Session
    at: Opening
    label: str
    directory: tempfile.TemporaryDirectory[str]
    token: str = field(default="", repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    codes: dict[str, float] = field(default_factory=dict, repr=False)
    server: asyncio.AbstractServer | None = None
    http: aiohttp.ClientSession | None = None
    refused: str = ""
    _until: float = 0.0
    _noted: float = 0.0

    async def start(self) -> None:
        """Open the private socket whose connections lead to the pod."""
        path = str(Path(self.directory.name) / "s")
        self.server = await asyncio.start_unix_server(self._carry, path)
        self.http = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=15.0),
        )

    async def close(self) -> None:
        """End every connection."""
        if self.http is not None:
            await self.http.close()
        if self.server is not None:
            self.server.close()
        self.directory.cleanup()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = self.session.client.config
        try:
            target = Port(self.at.namespace, self.at.pod, self.at.port)
            self.refused = await carry(config, target, reader, writer)
        except ApiError as error:
            self.refused = error.message

    async def allowed(self) -> bool:
        """Ask whether the user still may: no answer is a yes for ``STALE`` seconds after one."""
        if self.session.over:
            self.session.end()
            return False
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(AGAIN):
                yes = await self.session.rights.may(FORWARD._replace(namespace=self.at.namespace))
        except Unauthorized:
            self.session.end()
            return False
        except (ApiError, OSError, TimeoutError):
            return now < self._until
        self._until = now + STALE if yes else 0.0
        return yes

    async def held(self, work: Coroutine[Any, Any, web.StreamResponse]) -> web.StreamResponse:
        """Do *work* for as long as the user may have it.

        Raises:
            Ended: when the right has gone or the session is over; the work was ended.
        """
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self.session.gone.wait())
        try:
            while not task.done():
                await asyncio.wait({task, gone}, timeout=AGAIN, return_when=asyncio.FIRST_COMPLETED)
                if not task.done() and not await self.allowed():
                    raise Ended
            return task.result()
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    async def note(self, *, waking: bool = False) -> bool:
        """Note that a page is looked at, with its user's right; one that sleeps wakes by that.

        With *waking* it is noted however short ago that was. Return whether it wakes now.
        """
        now = asyncio.get_running_loop().time()
        if not self.at.notebook or (now - self._noted < dozing.NOTED_EVERY and not waking):
            return False
        self._noted = now
        client, space, name = self.session.client, self.at.namespace, self.at.notebook
        try:
            notebook: Notebook = await client.get(NOTEBOOKS, name, space)
            change = dozing.noted(notebook, time.time())
            if change:
                body = {"metadata": {"annotations": change}}
                await client.patch(NOTEBOOKS, name, body, space)
        except ApiError as error:
            log.warning("notebook %s/%s is not noted: %s", space, name, error)
            return False
        return dozing.is_page(notebook) and not dozing.stopped(notebook)
