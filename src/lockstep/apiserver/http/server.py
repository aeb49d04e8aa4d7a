"""The listening socket."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from lockstep.apiserver.http.message import Request, Response
from lockstep.apiserver.http.protocol import Handler, HttpProtocol

_DRAIN_SECONDS = 5.0


def tls_context(certificate: Path, key: Path, ca: Path) -> ssl.SSLContext:
    """Return a context that asks clients for a certificate of the authority *ca*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca)
    # Others than clients with certificates come with tokens; nobody is served without either.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _starting(_: Request) -> Response:
    return Response(503, b"starting", "text/plain; charset=utf-8", [("Retry-After", "1")])


class HttpServer:
    """Accepts connections and answers their requests, over TLS alone."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._handler: Handler = _starting
        self._connections: set[HttpProtocol] = set()
        self._server: asyncio.Server | None = None

    async def bind(self, host: str, port: int) -> int:
        """Listen, and return the port; until :meth:`serve`, requests are told to come later."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: HttpProtocol(self._handler, self._connections),
            host,
            port,
            ssl=self._context,
            backlog=1024,
            reuse_address=True,
        )
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def serve(self, handler: Handler) -> None:
        """Answer requests with *handler* from now on."""
        self._handler = handler

    async def close(self) -> None:
        """Accept nothing more, end the streams, and let what is under way finish."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        left = [connection.closed for connection in self._connections]
        if left:
            await asyncio.wait(left, timeout=_DRAIN_SECONDS)
