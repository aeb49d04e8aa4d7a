"""Commands in containers and ports of pods, carried on to the agent of the node."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final
from urllib.parse import quote

from lockstep.apiserver import status
from lockstep.apiserver.auth.access import require
from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.auth.rules import Attributes
from lockstep.apiserver.handlers.call import Call
from lockstep.apiserver.handlers.logs import agent_of, client_context, container_of, unreachable
from lockstep.apiserver.handlers.spdy_tunnel import PORT_FORWARD, SPDY, SpdyTunnel
from lockstep.apiserver.store import Key, Store
from lockstep.http import ByteTunnel, Tunnel

AT_AGENT: Final = {"exec": "exec", "attach": "attach", "portforward": "portForward"}
"""Subresources of pods, and what an agent calls them."""
_REASONS: Final = {400: "BadRequest", 403: "Forbidden", 404: "NotFound"}
_CONNECT_SECONDS: Final = 5.0
_MAX_HEAD: Final = 64 << 10
_PASSED: Final = (
    *("sec-websocket-key", "sec-websocket-version"),
    *("sec-websocket-protocol", "sec-websocket-extensions"),
)


def _only(subresource: str) -> str:
    if subresource == "portforward":
        return "ports are forwarded within WebSockets or SPDY"
    return f"pods/{subresource} is served within WebSockets alone, as kubectl 1.31 and later ask"


class Remote:
    """Connects clients with containers."""

    def __init__(self, store: Store, pki: Pki) -> None:
        self._store = store
        self._pki = pki
        self._context: ssl.SSLContext | None = None

    async def answer(self, call: Call) -> Tunnel:
        """Answer with a way to the agent, which has agreed to the upgrade.

        Raises:
            StatusError: when it is no WebSocket, the pod does not run, or its agent refuses.
        """
        self._require_right(call)
        (host, port), path = self._place(call)
        upgrade = call.request.headers.get("upgrade", "").lower()
        if self._context is None:
            self._context = client_context(self._pki)
        if upgrade == SPDY.lower() and call.route.subresource == "portforward":
            return await self._within_socket(call, host, port, path)
        if upgrade != "websocket":
            raise status.bad_request(f"Upgrade request required: {_only(call.route.subresource)}")
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(host, port, ssl=self._context)
        except OSError as error:
            raise unreachable("error dialing backend", error) from None
        try:
            head = await self._upgraded(call, path, reader, writer)
        except BaseException:
            writer.close()
            raise
        return ByteTunnel(head, reader, writer)

    async def _within_socket(self, call: Call, host: str, port: int, path: str) -> Tunnel:
        """Answer a client that speaks SPDY itself."""
        import aiohttp

        asked = call.request.headers.get("x-stream-protocol-version", PORT_FORWARD)
        if PORT_FORWARD not in map(str.strip, asked.split(",")):
            raise status.bad_request(f"stream protocol {asked} is not served, only {PORT_FORWARD}")
        address = f"[{host}]" if ":" in host else host
        session = aiohttp.ClientSession()
        try:
            socket = await session.ws_connect(
                f"https://{address}:{port}{path}",
                protocols=[f"{SPDY}+{PORT_FORWARD}"],
                ssl=self._context or False,
                max_msg_size=0,
                timeout=aiohttp.ClientWSTimeout(ws_close=1.0),
            )
        except aiohttp.WSServerHandshakeError as error:
            await session.close()
            raise status.StatusError(
                error.status, _REASONS.get(error.status, "InternalError"), error.message
            ) from None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await session.close()
            raise unreachable("error dialing backend", error) from None
        return SpdyTunnel(session, socket)

    def _require_right(self, call: Call) -> None:
        """Let pass who may create: a WebSocket begins with a GET, but what it does is no reading.

        Raises:
            StatusError: when the user may not.
        """
        route = call.route
        wish = Attributes(
            "create",
            "",
            "v1",
            "pods",
            subresource=route.subresource,
            namespace=route.namespace,
            name=route.name,
        )
        require(call.rbac, call.user, wish)

    def _place(self, call: Call) -> tuple[tuple[str, int], str]:
        namespace, name = call.route.namespace, call.route.name
        record = self._store.get(Key("pods", namespace, name))
        if record is None:
            raise status.not_found("", "pods", name)
        pod = record.object()
        node = pod["spec"].get("nodeName")
        if not node:
            raise status.bad_request(f"pod {name} does not have a host assigned")
        parts = [AT_AGENT[call.route.subresource], namespace, name]
        if call.route.subresource != "portforward":
            parts.append(container_of(pod, call.request.query.get("container", "")))
        path = "/".join(map(quote, parts))
        return agent_of(self._store, node), f"/{path}?{call.request.raw_query}"

    async def _upgraded(
        self, call: Call, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        sent = call.request.headers
        lines = [f"GET {path} HTTP/1.1", "Host: node", "Connection: Upgrade", "Upgrade: websocket"]
        lines += [f"{name}: {sent[name]}" for name in _PASSED if name in sent]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise status.internal(f"error reading from the node: {error}") from None
        code = int(head.split(b" ", 2)[1])
        if code != 101:
            text = (await reader.read(_MAX_HEAD)).decode(errors="replace").strip()
            raise status.StatusError(code, _REASONS.get(code, "InternalError"), text)
        return head
