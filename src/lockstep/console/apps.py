"""The one door to pages of pods (JupyterLab, TensorBoard, any port), each at an origin of its own.

A page is reached through the API server's port forwarding with the credentials of the user who
opened it, and for as long as that user may. Script in a notebook reaches neither the console nor
another page: each origin has a cookie of its own, which opens that page alone, and requests of
other pages are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import secrets
import tempfile
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp import web

from lockstep.console import answers
from lockstep.console.answers import answer, problem
from lockstep.console.app_opening import FORWARD, App, Ended, Opening, of_notebook
from lockstep.console.app_traffic import carry_request, carry_socket
from lockstep.console.sessions import Session
from lockstep.console.views.query import BadQuery, require_names

ENTER: Final = "/.lockstep/enter"
COOKIE: Final = "lockstep-app"
CODE_SECONDS: Final = 60.0
MOST: Final = 2_000
MOST_OF_ONE: Final = 50
"""Pages that one session may have open."""
METHODS: Final = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
BARE: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""What the door's own answers say."""


class Apps:
    """The pages that are open, by the first part of their host name."""

    def __init__(self, origins: Iterable[str], host: str = "") -> None:
        """Take the console's addresses, and the name below which pages of the remote ones are.

        The pages of ``https://console.example.com`` are below ``apps.console.example.com`` where
        *host* is empty; those of a loopback address below ``apps.localhost``.
        """
        self._below = {one.partition("://")[2]: host_of(one, host) for one in origins}
        self._schemes = {host_of(one, host): one.partition("://")[0] for one in origins}
        self._open: dict[str, App] = {}

    def routes(self, user: Callable[[web.Request], Session]) -> list[web.RouteDef]:
        """Return the routes of the console itself."""

        async def open_app(request: web.Request) -> web.Response:
            given: Opening = await answers.body(request, Opening)
            session, below = user(request), self._below[request.headers.get("Host", "")]
            return await self._enter(session, given, below)

        return [web.post("/api/apps", open_app)]

    def meant(self, request: web.Request) -> bool:
        """Tell whether a request is for a page of a pod and not for the console."""
        return self._named(request) is not None

    def _named(self, request: web.Request) -> tuple[str, str] | None:
        """Return the label and the scheme of the page that a request's host names."""
        label, _, below = request.headers.get("Host", "").partition(".")
        scheme = self._schemes.get(below)
        return None if scheme is None else (label, scheme)

    async def _enter(self, session: Session, given: Opening, below: str) -> web.Response:
        token = ""
        if given.notebook:
            require_names(namespace=given.namespace, notebook=given.notebook)
            given, token = await of_notebook(session.client, given)
        require_names(namespace=given.namespace, pod=given.pod)
        if not 1 <= given.port <= 65_535:
            raise BadQuery(f"port: {given.port} is no number from 1 to 65535")
        # Of several slashes a browser would make the name of another host.
        given.path = "/" + given.path.lstrip("/\\")
        if not await session.rights.may(FORWARD._replace(namespace=given.namespace)):
            right = "create pods/portforward"
            return problem(403, f"opening an app takes the right to {right} in {given.namespace}")
        app = await self._app(session, given)
        app.at, app.token = given, token
        code = secrets.token_urlsafe(32)
        app.codes = {one: until for one, until in app.codes.items() if until > _now()}
        app.codes[code] = _now() + CODE_SECONDS
        there = f"{self._schemes[below]}://{app.label}.{below}{ENTER}?{urlencode({'code': code})}"
        return answer({"url": there})

    async def _app(self, session: Session, given: Opening) -> App:
        await self._sweep()
        who = (session.secret, given.namespace, given.pod, str(given.port))
        digest = hashlib.sha256("/".join(who).encode()).hexdigest()[:12]
        label = f"{given.pod[:40].strip('.-').replace('.', '-')}-{digest}"
        found = self._open.get(label)
        if found is None:
            mine = sum(one.session is session for one in self._open.values())
            if mine >= MOST_OF_ONE or len(self._open) >= MOST:
                raise BadQuery(f"there are {mine} apps open already; close some by signing out")
            directory = tempfile.TemporaryDirectory(prefix="lockstep-app-")
            found = App(session, given, label, directory)
            await found.start()
            self._open[label] = found
        return found

    async def _sweep(self) -> None:
        for label in [label for label, app in self._open.items() if app.session.over]:
            app = self._open.pop(label)
            app.session.end()
            await app.close()

    async def close(self) -> None:
        """Close every page."""
        for app in self._open.values():
            await app.close()
        self._open.clear()

    async def carry(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for a page: let the browser in, or hand it to the pod."""
        request["app"] = True
        host = request.headers.get("Host", "")
        label, scheme = self._named(request) or ("", "")
        app = self._open.get(label)
        if app is None or app.session.over:
            return _said(404, "This app is not open any more. Open it again from the console.")
        socket = request.headers.get("Upgrade", "").lower() == "websocket"
        if refused := _foreign(request, f"{scheme}://{host}", socket=socket):
            return _said(403, refused)
        if request.path == ENTER:
            return _let_in(request, app, scheme)
        if not any(secrets.compare_digest(one, app.secret) for one in _shown(request, scheme)):
            return _said(403, "Open this app from the console.")
        if not await app.allowed():
            return _said(403, f"You may not open ports of pods in {app.at.namespace} any more.")
        app.session.touch()
        await app.note()
        return await self._held(request, app, socket=socket)

    @staticmethod
    async def _held(request: web.Request, app: App, *, socket: bool) -> web.StreamResponse:
        assert app.http is not None  # noqa: S101 - it is started before it is known
        to_pod = carry_socket if socket else carry_request
        try:
            return await app.held(to_pod(request, app.http, app.token))
        except Ended:
            if request.transport is not None:
                request.transport.abort()
            return _said(403, "Your right to this app has ended.")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            why = app.refused or str(error) or "the connection broke"
            if await app.note(waking=True):
                return _waking(app.at.notebook)
            at = app.at
            return _said(502, f"Pod {at.pod} does not answer at port {at.port}: {why}")


def _foreign(request: web.Request, own: str, *, socket: bool) -> str:
    """Return why a request of another page is refused; another app is another page."""
    if request.method not in METHODS:
        return f"{request.method}: this method is not passed on"
    origins = request.headers.getall("Origin", [])
    if any(one != own for one in origins) or (socket and not origins):
        return "Origin: requests of other pages are refused"
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site in ("none", "same-origin"):
        return ""
    leads_here = (
        request.path == ENTER
        and request.method == "GET"
        and request.headers.get("Sec-Fetch-Mode") == "navigate"
        and request.headers.get("Sec-Fetch-Dest") == "document"
    )
    return "" if leads_here else "Sec-Fetch-Site: requests of other pages are refused"


def _cookie(scheme: str) -> str:
    """Return the cookie's name: no other page may set a ``__Host-`` one, which needs TLS."""
    return f"__Host-{COOKIE}" if scheme == "https" else COOKIE


def _shown(request: web.Request, scheme: str) -> list[str]:
    """Return every cookie of the door's name: a sibling may have set a second one."""
    found = []
    for part in request.headers.get("Cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _cookie(scheme) and value.isascii():
            found.append(value.strip('"'))
    return found


def _let_in(request: web.Request, app: App, scheme: str) -> web.StreamResponse:
    until = app.codes.pop(request.query.get("code", ""), 0.0)
    if _now() > until:
        return _said(403, "This link was used or is too old. Open the app from the console.")
    # The page leads on by itself, so that its strict cookie is sent with the next request.
    to = html.escape(app.at.path, quote=True)
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={to}">'
    response = web.Response(text=text, content_type="text/html", headers=BARE)
    response.set_cookie(
        _cookie(scheme),
        app.secret,
        httponly=True,
        samesite="Strict",
        secure=scheme == "https",
        path="/",
    )
    return response


def _said(status: int, words: str) -> web.Response:
    return web.Response(status=status, text=words, content_type="text/plain", headers=BARE)


def _waking(name: str) -> web.Response:
    """Return a page that looks again until the real one is there."""
    text = (
        f'<!doctype html><meta http-equiv="refresh" content="2"><p>{html.escape(name)} wakes up ...'
    )
    return web.Response(status=503, text=text, content_type="text/html", headers=BARE)


def host_of(origin: str, host: str = "") -> str:
    """Return the name below which the pages of a console are that is reached at *origin*."""
    parts = urlsplit(origin)
    name = parts.hostname or "localhost"
    port = f":{parts.port}" if parts.port else ""
    if name in ("127.0.0.1", "::1", "localhost"):
        return f"apps.localhost{port}"
    return host or f"apps.{name}{port}"


def _now() -> float:
    return asyncio.get_running_loop().time()
