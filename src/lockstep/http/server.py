"""The listening socket."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import ssl
from pathlib import Path

from lockstep.http.connections import Connections
from lockstep.http.message import Request, Response
from lockstep.http.protocol import HEAD_SECONDS, Admit, Handler, HttpProtocol
from lockstep.http.requests import ORDINARY, Bounds

_DRAIN_SECONDS = 5.0
_MOST = 8192
_STRANGERS = 512
"""Connections without a credential; more make the oldest of them go."""
_OTHER_FILES = 256


def tls_context(certificate: Path, key: Path, ca: Path) -> ssl.SSLContext:
    """Return a context that asks clients for a certificate of the authority *ca*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca)
    # Clients without certificates come with tokens; a client with neither is not served.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _starting(_: Request) -> Response:
    return Response(503, b"starting", "text/plain; charset=utf-8", [("Retry-After", "1")])


def _room() -> int:
    """Return how many connections there may be, having asked for all the files there may be."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft < 0 else min(_MOST, max(64, soft - _OTHER_FILES))


class HttpServer:
    """Accepts connections and answers their requests: over TLS where there is a *context*.

    It has *most* connections at a time; without, as many as the process may have files.
    """

    def __init__(
        self, context: ssl.SSLContext | None = None, bounds: Bounds = ORDINARY, most: int = 0
    ) -> None:
        self._context = context
        self._bounds = bounds
        self._handler: Handler = _starting
        self._admit: Admit | None = None
        room = most or _room()
        per_peer, strangers = room * 3 // 4, min(_STRANGERS, room // 4)
        if most:
            per_peer = strangers = most
        self._connections = Connections(most=room, per_peer=per_peer, strangers=strangers)
        self._server: asyncio.Server | None = None

    async def bind(self, host: str | None, port: int) -> int:
        """Listen, and return the port; until :meth:`serve`, requests are told to come later."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpProtocol(self._handler, self._connections, self._admit, self._bounds),
            host,
            port,
            ssl=self._context,
            ssl_handshake_timeout=HEAD_SECONDS if self._context else None,
            backlog=1024,
            reuse_address=True,
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def serve(self, handler: Handler, admit: Admit | None = None) -> None:
        """Answer requests with *handler* from now on; *admit* looks at them before their bodies."""
        self._handler, self._admit = handler, admit

    async def close(self) -> None:
        """Accept nothing more, end the streams, and let what is under way finish."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.close()
        left = [connection.closed for connection in self._connections]
        if left:
            await asyncio.wait(left, timeout=_DRAIN_SECONDS)
