"""What goes between a browser and a pod: requests, answers and WebSockets, each made safe to pass.

The door has looked at the request's origin and at the user's right before anything is passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

COOKIES: Final = ("lockstep-", "__Host-lockstep")
"""How the names of Lockstep's own cookies begin: no pod gets or sets one."""
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
ANSWERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Origin-Agent-Cluster": "?1",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
}
"""What each answer of a pod says besides: no other page may frame, load or open it."""
FRAMED: Final = "frame-ancestors 'self'"


async def carry_request(
    request: web.Request, http: aiohttp.ClientSession, token: str
) -> web.StreamResponse:
    """Hand a request to the pod and its answer back; *token* is what the pod's server asks for."""
    body = request.content if request.can_read_body else None
    headers = _headers(request, token)
    if body is not None and (length := request.headers.get("Content-Length")):
        headers["Content-Length"] = length
    target = URL(f"http://app{request.rel_url.raw_path_qs}", encoded=True)
    async with http.request(
        request.method, target, headers=headers, data=body, allow_redirects=False
    ) as found:
        response = web.StreamResponse(status=found.status, reason=found.reason)
        for name, value in found.headers.items():
            if (kept := _passed(name, value)) is not None:
                response.headers.add(name, kept)
        response.headers.update(ANSWERS)
        # Policies add up, so that the pod's own holds besides.
        response.headers.add("Content-Security-Policy", FRAMED)
        await response.prepare(request)
        async for chunk in found.content.iter_any():
            await response.write(chunk)
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response


async def carry_socket(
    request: web.Request, http: aiohttp.ClientSession, token: str
) -> web.StreamResponse:
    """Carry a WebSocket until one side ends it."""
    wanted = request.headers.get("Sec-WebSocket-Protocol", "")
    protocols = [one.strip() for one in wanted.split(",") if one.strip()]
    target = URL(f"ws://app{request.rel_url.raw_path_qs}", encoded=True)
    headers = _headers(request, token)
    async with http.ws_connect(
        target, headers=headers, protocols=protocols, max_msg_size=0, autoping=False
    ) as there:
        here = web.WebSocketResponse(
            protocols=[there.protocol] if there.protocol else (), max_msg_size=0, autoping=False
        )
        await here.prepare(request)
        tasks = [asyncio.create_task(_pump(here, there)), asyncio.create_task(_pump(there, here))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await here.close()
        return here


def _passed(name: str, value: str) -> str | None:
    """Return a header of a pod's answer as the browser gets it; None for one that it does not."""
    low = name.lower()
    if low in HOP_BY_HOP or low.startswith("access-control-") or low == "x-frame-options":
        return None
    if low != "set-cookie":
        return value
    parts = [one.strip() for one in value.split(";")]
    if parts[0].startswith(COOKIES):
        return None
    # A cookie of the whole domain would reach the pages of other pods.
    return "; ".join(one for one in parts if not one.lower().startswith("domain"))


def _headers(request: web.Request, token: str) -> CIMultiDict[str]:
    """Return the headers that a pod gets: not those of one hop, and no cookie of Lockstep's."""
    kept: CIMultiDict[str] = CIMultiDict()
    named = request.headers.get("Connection", "").lower().split(",")
    dropped = {*HOP_BY_HOP, "cookie", "content-length", *(one.strip() for one in named)}
    for name, value in request.headers.items():
        low = name.lower()
        if low not in dropped and not low.startswith("sec-websocket-"):
            kept.add(name, value)
    others = [f"{k}={v}" for k, v in request.cookies.items() if not k.startswith(COOKIES)]
    if others:
        kept["Cookie"] = "; ".join(others)
    if token:
        kept["Authorization"] = f"token {token}"
    return kept


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
