"""Apps in pods (JupyterLab, TensorBoard), each at an origin of its own, with the user's own right.

An app is reached through the API server's port forwarding with the credentials of the user who
opened it. Script in a notebook must not reach the console: the app's origin has a cookie of its
own, which opens that app alone, and the console's cookie is never sent there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from lockstep.console import answers
from lockstep.console.answers import answer, problem
from lockstep.console.rights import Ask
from lockstep.console.sessions import Session
from lockstep.console.views.query import BadQuery, require_names
from lockstep.kube.errors import ApiError
from lockstep.kube.port_carrying import Port, carry

ENTER: Final = "/.lockstep/enter"
COOKIE: Final = "lockstep-app"
TICKET_SECONDS: Final = 60.0
MOST: Final = 200
HOP_BY_HOP: Final = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
FORWARD: Final = Ask("create", "", "pods", "", "portforward")


class Opening(msgspec.Struct, forbid_unknown_fields=True):
    """A port of a pod, and the path to begin at."""

    namespace: str
    pod: str
    port: int
    path: str = "/"


@dataclass(eq=False)
class App:
    """One port of one pod, as one user opened it."""

    session: Session
    namespace: str
    pod: str
    port: int
    path: str
    label: str
    directory: tempfile.TemporaryDirectory[str]
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    tickets: dict[str, float] = field(default_factory=dict)
    server: asyncio.AbstractServer | None = None
    http: aiohttp.ClientSession | None = None
    refused: str = ""

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
            target = Port(self.namespace, self.pod, self.port)
            self.refused = await carry(config, target, reader, writer)
        except ApiError as error:
            self.refused = error.message


class Apps:
    """The apps that are open, by the first part of their host name."""

    def __init__(self, host: str, *, secure: bool) -> None:
        """Take the name below which apps are reached, as ``apps.localhost:7490``."""
        self._host, self._secure = host, secure
        self._open: dict[str, App] = {}

    def routes(self, user: Callable[[web.Request], Session]) -> list[web.RouteDef]:
        """Return the routes of the console itself."""

        async def open_app(request: web.Request) -> web.Response:
            given: Opening = await answers.body(request, Opening)
            return await self._enter(user(request), given)

        return [web.post("/api/apps", open_app)]

    def meant(self, request: web.Request) -> bool:
        """Tell whether a request is for an app and not for the console."""
        return request.headers.get("Host", "").endswith(f".{self._host}")

    async def _enter(self, session: Session, given: Opening) -> web.Response:
        require_names(namespace=given.namespace, pod=given.pod)
        if not 1 <= given.port <= 65_535:
            raise BadQuery(f"port: {given.port} is no number from 1 to 65535")
        path = given.path if given.path.startswith("/") else f"/{given.path}"
        if not await session.rights.may(FORWARD._replace(namespace=given.namespace)):
            right = "create pods/portforward"
            return problem(403, f"opening an app takes the right to {right} in {given.namespace}")
        app = await self._app(session, given, path)
        ticket = secrets.token_urlsafe(32)
        app.tickets[ticket] = _now() + TICKET_SECONDS
        scheme = "https" if self._secure else "http"
        there = f"{scheme}://{app.label}.{self._host}{ENTER}?{urlencode({'ticket': ticket})}"
        return answer({"url": there})

    async def _app(self, session: Session, given: Opening, path: str) -> App:
        await self._sweep()
        if len(self._open) >= MOST:
            raise BadQuery(f"there are {MOST} apps open already; close some by signing out")
        who = (session.secret, given.namespace, given.pod, str(given.port))
        digest = hashlib.sha256("/".join(who).encode()).hexdigest()[:12]
        label = f"{given.pod[:40].strip('.-').replace('.', '-')}-{digest}"
        found = self._open.get(label)
        if found is None:
            directory = tempfile.TemporaryDirectory(prefix="lockstep-app-")
            where = (given.namespace, given.pod, given.port, path, label, directory)
            found = App(session, *where)
            await found.start()
            self._open[label] = found
        found.path = path
        return found

    async def _sweep(self) -> None:
        for label in [label for label, app in self._open.items() if app.session.ended]:
            await self._open.pop(label).close()

    async def close(self) -> None:
        """Close every app."""
        for app in self._open.values():
            await app.close()
        self._open.clear()

    async def carry(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for an app: let the browser in, or hand it to the pod."""
        request["app"] = True
        host = request.headers.get("Host", "")
        app = self._open.get(host.removesuffix(f".{self._host}"))
        if app is None or app.session.ended:
            return _page(404, "This app is not open any more. Open it again from the console.")
        if refused := self._foreign(request, host):
            return _page(403, refused)
        if request.path == ENTER:
            return self._let_in(request, app)
        if request.cookies.get(COOKIE) != app.secret:
            return _page(403, "Open this app from the console.")
        try:
            if request.headers.get("Upgrade", "").lower() == "websocket":
                return await _socket(request, app)
            return await _request(request, app)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = app.refused or str(error) or "the connection broke"
            return _page(502, f"Pod {app.pod} does not answer at port {app.port}: {why}")

    def _foreign(self, request: web.Request, host: str) -> str:
        """Return why a request of another page is refused; another app is another page."""
        scheme = "https" if self._secure else "http"
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{scheme}://{host}":
            return "Origin: requests of other pages are refused"
        site = request.headers.get("Sec-Fetch-Site", "none")
        leads_here = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
        if site in ("cross-site", "same-site") and not (leads_here and request.method == "GET"):
            return "Sec-Fetch-Site: requests of other pages are refused"
        return ""

    def _let_in(self, request: web.Request, app: App) -> web.StreamResponse:
        until = app.tickets.pop(request.query.get("ticket", ""), 0.0)
        if _now() > until:
            return _page(403, "This link was used or is too old. Open the app from the console.")
        response = web.HTTPSeeOther(app.path)
        response.set_cookie(
            COOKIE, app.secret, httponly=True, samesite="Lax", secure=self._secure, path="/"
        )
        return response


def _page(status: int, words: str) -> web.Response:
    return web.Response(status=status, text=words, content_type="text/plain")


def _headers(request: web.Request) -> CIMultiDict[str]:
    """Return the headers that an app gets: not those of one hop, and not the console's cookie."""
    kept: CIMultiDict[str] = CIMultiDict()
    named = request.headers.get("Connection", "").lower().split(",")
    dropped = HOP_BY_HOP | {one.strip() for one in named}
    for name, value in request.headers.items():
        low = name.lower()
        if (
            low in dropped
            or low in ("cookie", "content-length")
            or low.startswith("sec-websocket-")
        ):
            continue
        kept.add(name, value)
    others = [f"{k}={v}" for k, v in request.cookies.items() if not k.startswith("lockstep-")]
    if others:
        kept["Cookie"] = "; ".join(others)
    return kept


async def _request(request: web.Request, app: App) -> web.StreamResponse:
    assert app.http is not None  # noqa: S101 - it is started before it is known
    body = request.content if request.can_read_body else None
    headers = _headers(request)
    if body is not None and (length := request.headers.get("Content-Length")):
        headers["Content-Length"] = length
    target = URL(f"http://app{request.rel_url.raw_path_qs}", encoded=True)
    async with app.http.request(
        request.method, target, headers=headers, data=body, allow_redirects=False
    ) as found:
        response = web.StreamResponse(status=found.status, reason=found.reason)
        for name, value in found.headers.items():
            if name.lower() not in HOP_BY_HOP:
                response.headers.add(name, value)
        await response.prepare(request)
        async for chunk in found.content.iter_any():
            await response.write(chunk)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response


async def _socket(request: web.Request, app: App) -> web.StreamResponse:
    assert app.http is not None  # noqa: S101 - it is started before it is known
    wanted = request.headers.get("Sec-WebSocket-Protocol", "")
    protocols = [one.strip() for one in wanted.split(",") if one.strip()]
    target = URL(f"ws://app{request.rel_url.raw_path_qs}", encoded=True)
    async with app.http.ws_connect(
        target, headers=_headers(request), protocols=protocols, max_msg_size=0, autoping=False
    ) as there:
        here = web.WebSocketResponse(
            protocols=[there.protocol] if there.protocol else (), max_msg_size=0, autoping=False
        )
        await here.prepare(request)
        tasks = [asyncio.create_task(_pump(here, there)), asyncio.create_task(_pump(there, here))]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await here.close()
        return here


async def _pump(source: Any, target: Any) -> None:
    async for message in source:
        match message.type:
            case aiohttp.WSMsgType.TEXT:
                await target.send_str(message.data)
            case aiohttp.WSMsgType.BINARY:
                await target.send_bytes(message.data)
            case aiohttp.WSMsgType.PING:
                await target.ping(message.data)
            case aiohttp.WSMsgType.PONG:
                await target.pong(message.data)
    await target.close(code=source.close_code or 1000)


def host_of(origin: str) -> str:
    """Return the name below which a console's apps are reached when no other is given."""
    parts = urlsplit(origin)
    name = parts.hostname or "localhost"
    port = f":{parts.port}" if parts.port else ""
    return f"apps.localhost{port}" if name in ("127.0.0.1", "::1") else f"apps.{name}{port}"


def _now() -> float:
    return asyncio.get_running_loop().time()
