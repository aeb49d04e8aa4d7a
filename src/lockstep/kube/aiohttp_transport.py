"""The transport on aiohttp."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Mapping

import aiohttp
from yarl import URL

from lockstep.kube.errors import Unreachable
from lockstep.kube.transport import Request, Response

CONNECT_TIMEOUT = 10.0
MAX_CONNECTIONS = 64
"""For requests; streams have connections of their own, without a limit."""

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)


class AiohttpStream:
    """An answer that is read as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces."""
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except aiohttp.ClientPayloadError as error:
            raise Unreachable("Connection", "the stream broke off") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable("Connection", f"the stream broke: {_say(error)}") from error

    async def close(self) -> None:
        """Close the connection; what is under way on a stream cannot be taken back otherwise."""
        self._answer.close()


class AiohttpTransport:
    """Pooled HTTP/1.1 connections to one server."""

    def __init__(
        self, server: str, tls: ssl.SSLContext | None, *, server_name: str | None = None
    ) -> None:
        self._server = server
        self._tls = tls
        self._server_name = server_name
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    def _session(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=limit, ssl=self._tls if self._tls is not None else True, keepalive_timeout=60
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=_NO_TIMEOUT,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Content-Type"),
        )

    async def send(self, request: Request) -> Response:
        """Send *request* and read the whole answer."""
        if self._requests is None:
            self._requests = self._session(MAX_CONNECTIONS)
        try:
            answer = await self._request(self._requests, request)
            return Response(answer.status, answer.headers, await answer.read())
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    async def open(self, request: Request) -> AiohttpStream:
        """Send *request* and return once the answer's headers are there."""
        if self._streams is None:
            self._streams = self._session(0)
        try:
            return AiohttpStream(await self._request(self._streams, request))
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    async def _request(
        self, session: aiohttp.ClientSession, request: Request
    ) -> aiohttp.ClientResponse:
        return await session.request(
            request.method,
            URL(self._server + request.target, encoded=True),
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            server_hostname=self._server_name,
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        text = f"{self._server}: {_say(error)}"
        if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
            return Unreachable("TLS", f"{self._server}: TLS: {_say(error)}", acted=False)
        if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return Unreachable("Connection", text, acted=False)
        return Unreachable("Connection", text)

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._requests, self._streams):
            if session is not None:
                await session.close()


def _say(error: Exception) -> str:
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(inner, ssl.SSLError):
        # Its number is OpenSSL's and means something else to the operating system.
        return str(getattr(inner, "verify_message", "") or inner)
    if isinstance(inner, OSError) and inner.errno and inner.errno > 0:
        return os.strerror(inner.errno)
    return str(error) or type(error).__name__
