"""Notebooks in the browser: requests below ``/notebook/NAMESPACE/NAME`` go to its server."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import time
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp import WSMsgType, web
from multidict import CIMultiDict
from yarl import URL

from lockstep.api.core import Pod
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, PORT, Notebook
from lockstep.kube.errors import ApiError
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import dozing, notebook_pod
from lockstep.notebooks.gateway.access import Access
from lockstep.notebooks.inside.main import MOST, PING_SECONDS

log = logging.getLogger(__name__)

COOKIE: Final = "lockstep-notebook"
_OF_THIS_HOP: Final = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_CHUNK: Final = 64 << 10
CONNECT_SECONDS: Final = 10.0


@dataclass
class Pages:
    """Lets browsers through that have the notebook's token, as a link once and as a cookie then."""

    access: Access
    notebooks: Informer[Notebook]
    pods: Informer[Pod]
    http: aiohttp.ClientSession

    def routes(self) -> list[web.RouteDef]:
        """Return what is served."""
        return [web.route("*", "/notebook/{namespace}/{name}{rest:(/.*)?}", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        space, name = request.match_info["namespace"], request.match_info["name"]
        notebook = self.notebooks.get(space, name)
        given = request.query.get("lockstep-token", "")
        token = given or request.cookies.get(COOKIE, "")
        if notebook is None or not await self.access.may_enter(notebook, token):
            raise web.HTTPForbidden(text="open the link that `lockstep dev open` prints\n")
        if given:
            return self._entered(request, given)
        await self._note(notebook)
        pod = self.pods.get(space, notebook_pod.pod_name(notebook))
        if dozing.is_page(notebook) and not (pod is not None and _ready(pod)):
            return _waking(notebook)
        if pod is None or pod.status.phase != "Running" or not pod.status.pod_ip:
            raise web.HTTPServiceUnavailable(text=_why_not(notebook, pod))
        target = f"http://{pod.status.pod_ip}:{PORT}{request.raw_path}"
        headers = _headers(request, token)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._socket(request, target, headers)
        return await self._plain(request, target, headers)

    async def _note(self, notebook: Notebook) -> None:
        """Note that a page is looked at, and wake it if it sleeps."""
        change = dozing.noted(notebook, time.time())
        if not change:
            return
        about = notebook.metadata
        try:
            body = {"metadata": {"annotations": change}}
            await self.access.client.patch(NOTEBOOKS, about.name, body, about.namespace)
        except ApiError as error:
            log.warning("notebook %s/%s is not noted: %s", about.namespace, about.name, error)

    @staticmethod
    def _entered(request: web.Request, token: str) -> web.StreamResponse:
        """Take the token out of the address and keep it where scripts cannot read it."""
        part = request.match_info
        path = f"/notebook/{part['namespace']}/{part['name']}"
        answer = web.HTTPFound(request.rel_url.without_query_params("lockstep-token"))
        answer.set_cookie(COOKIE, token, path=path, httponly=True, samesite="Lax")
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer

    async def _plain(
        self, request: web.Request, target: str, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        body = request.content if request.can_read_body else None
        try:
            async with self.http.request(
                request.method,
                URL(target, encoded=True),
                headers=headers,
                data=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            ) as found:
                answer = web.StreamResponse(status=found.status)
                for key, text in found.headers.items():
                    if key.lower() not in _OF_THIS_HOP and key.lower() != "content-encoding":
                        answer.headers.add(key, text)
                await answer.prepare(request)
                async for chunk in found.content.iter_chunked(_CHUNK):
                    await answer.write(chunk)
                await answer.write_eof()
                return answer
        except (aiohttp.ClientConnectorError, TimeoutError) as error:
            raise web.HTTPBadGateway(text=f"the notebook does not answer yet: {error}\n") from error

    async def _socket(
        self, request: web.Request, target: str, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        asked = request.headers.get("Sec-WebSocket-Protocol", "")
        protocols = tuple(one.strip() for one in asked.split(",") if one.strip())
        for key in [one for one in headers if one.lower().startswith("sec-websocket")]:
            del headers[key]
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                server = await self.http.ws_connect(
                    URL(target, encoded=True),
                    headers=headers,
                    protocols=protocols,
                    max_msg_size=MOST,
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise web.HTTPBadGateway(text=f"the notebook does not answer: {error}\n") from error
        chosen = (server.protocol,) if server.protocol else ()
        client = web.WebSocketResponse(protocols=chosen, heartbeat=PING_SECONDS, max_msg_size=MOST)
        async with server:
            await client.prepare(request)
            ways = [
                asyncio.create_task(_copy(client, server)),
                asyncio.create_task(_copy(server, client)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        with contextlib.suppress(ConnectionError):
            await client.close()
        return client


Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


async def _copy(source: Socket, target: Socket) -> None:
    async for frame in source:
        if frame.type is WSMsgType.TEXT:
            await target.send_str(frame.data)
        elif frame.type is WSMsgType.BINARY:
            await target.send_bytes(frame.data)


def _headers(request: web.Request, token: str) -> CIMultiDict[str]:
    """Return what goes on to the server: its own token instead of our cookie."""
    kept: CIMultiDict[str] = CIMultiDict()
    for key, text in request.headers.items():
        if key.lower() not in _OF_THIS_HOP and key.lower() != "cookie":
            kept.add(key, text)
    cookies = [f"{key}={text}" for key, text in request.cookies.items() if key != COOKIE]
    if cookies:
        kept["Cookie"] = "; ".join(cookies)
    kept["Authorization"] = f"token {token}"
    return kept


def _ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)


def _waking(notebook: Notebook) -> web.Response:
    """Return a page that looks again until the real one is there."""
    name = html.escape(notebook.metadata.name)
    text = f'<!doctype html><meta http-equiv="refresh" content="2"><p>{name} wakes up ...'
    return web.Response(status=503, text=text, content_type="text/html")


def _why_not(notebook: Notebook, pod: Pod | None) -> str:
    if pod is None:
        return f"notebook {notebook.metadata.name} is stopped; start it: lockstep dev resume\n"
    waiting = [one.message for one in pod.status.conditions if one.status == "False"]
    return f"notebook {notebook.metadata.name} is not ready: {' '.join(waiting)}\n"
