"""A transport for commands that ask once and end.

``http.client`` is imported in a tenth of the time that aiohttp takes, which is most of what a
short command would do. Streams, which only long commands open, go over the usual transport.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

from lockstep.kube.config import ClusterConfig
from lockstep.kube.connection import default_transport
from lockstep.kube.credentials import Credential
from lockstep.kube.errors import Unreachable
from lockstep.kube.tls import client_context
from lockstep.kube.transport import Request, Response, Stream, Transport

TIMEOUT = 30.0


def lean_transport(config: ClusterConfig, credential: Credential) -> Transport:
    """Return the transport; the usual one where this one lacks what *config* asks for."""
    if config.tls_server_name is not None:
        return default_transport(config, credential)
    return LeanTransport(config, credential)


class LeanTransport:
    """One connection, used by one request after the other."""

    def __init__(self, config: ClusterConfig, credential: Credential) -> None:
        self._config = config
        self._credential = credential
        self._turn = asyncio.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._usual: Transport | None = None

    async def send(self, request: Request) -> Response:
        """Send *request* and read the whole answer."""
        async with self._turn:
            return await asyncio.to_thread(self._send, request)

    async def open(self, request: Request) -> Stream:
        """Send *request* over the usual transport and return its answer as a stream."""
        if self._usual is None:
            self._usual = default_transport(self._config, self._credential)
        return await self._usual.open(request)

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            self._connection.close()
        if self._usual is not None:
            await self._usual.close()

    def _send(self, request: Request) -> Response:
        connection = self._connected()
        try:
            connection.request(request.method, request.target, request.body, dict(request.headers))
            answer = connection.getresponse()
            # Its look-up disregards case, as a transport's headers must.
            headers = cast("Mapping[str, str]", answer.headers)
            return Response(answer.status, headers, answer.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable("Connection", self._say(error)) from error

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._connect()
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except ssl.SSLError as error:
                raise Unreachable("TLS", self._say(error), acted=False) from error
            except OSError as error:
                raise Unreachable("Connection", self._say(error), acted=False) from error
        return self._connection

    def _connect(self) -> http.client.HTTPConnection:
        url = urlsplit(self._config.server)
        if url.scheme == "http":
            return http.client.HTTPConnection(url.netloc, timeout=TIMEOUT)
        context = client_context(
            ca=self._config.ca,
            certificate=self._credential.certificate,
            key=self._credential.key,
            insecure=self._config.insecure,
        )
        return http.client.HTTPSConnection(url.netloc, timeout=TIMEOUT, context=context)

    def _say(self, error: Exception) -> str:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return f"{self._config.server}: {text}"
