"""A small HTTP server that answers GET on a few paths, for probes and scrapes."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from lockstep.http.message import Request, Response
from lockstep.http.requests import Bounds
from lockstep.http.server import HttpServer

HEAD_LIMIT: Final = 16 * 1024
AT_ONCE: Final = 32
"""Connections that are served at a time; more are closed unheard."""

LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = None

Handler = Callable[[Request], Awaitable[Response]]


def answer(status: int, body: bytes, content_type: str = "text/plain") -> Response:
    """Return an answer in plain text."""
    return Response(status, body, content_type)


def free_or(port: int) -> int:
    """Return *port* if it can be listened on, else 0: any free one."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return 0
    return port


def listener(handler: Handler, tls: ssl.SSLContext | None = None) -> HttpServer:
    """Return a server that asks *handler* and closes each connection after one answer."""

    async def get_alone(request: Request) -> Response:
        if request.method in ("GET", "HEAD"):
            return await handler(request)
        return answer(405, b"only GET is answered\n")

    server = HttpServer(tls, Bounds(HEAD_LIMIT, body=0, once=True), AT_ONCE)
    server.serve(get_alone)
    return server
