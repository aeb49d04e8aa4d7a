"""The transport: HTTP/1.1 over pooled connections, straight on asyncio's protocols."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping

from lockstep.http.answers import AnswerReader
from lockstep.kube.errors import Unreachable
from lockstep.kube.http_channel import Channel, Endpoint, unreachable
from lockstep.kube.transport import Request, Response

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 60.0
"""A connection that rested for longer is not used again: the server may be about to close it."""
MAX_CONNECTIONS = 64
"""For requests; streams have connections of their own, without a limit."""


class HttpStream:
    """An answer that is read as it comes."""

    def __init__(self, channel: Channel, reader: AnswerReader) -> None:
        self._channel = channel
        self.status = reader.status
        self.headers: Mapping[str, str] = reader.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces."""
        while piece := await self._channel.read():
            yield piece

    async def close(self) -> None:
        """Close the connection; what is under way on a stream cannot be taken back otherwise."""
        self._channel.abort()


class HttpTransport:
    """Pooled HTTP/1.1 connections to one server."""

    def __init__(
        self, server: str, tls: ssl.SSLContext | None, *, server_name: str | None = None
    ) -> None:
        self._endpoint = Endpoint.of(server, tls, server_name)
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._resting: deque[Channel] = deque()
        self._channels: set[Channel] = set()

    async def send(self, request: Request) -> Response:
        """Send *request* and read the whole answer."""
        async with self._slots:
            channel = self._rested()
            if channel is not None:
                try:
                    return await self._exchange(channel, request)
                except Unreachable:
                    # A server may end a connection that rests just as a request is sent on it.
                    # What only reads is asked again.
                    if request.method != "GET" or channel.answered:
                        raise
            return await self._exchange(await self._connect(), request)

    async def _exchange(self, channel: Channel, request: Request) -> Response:
        try:
            return await channel.exchange(request)
        finally:
            self._rest(channel)

    async def open(self, request: Request) -> HttpStream:
        """Send *request* and return once the answer's headers are there."""
        channel = await self._connect()
        try:
            return HttpStream(channel, await channel.begin(request))
        except BaseException:
            channel.abort()
            raise

    def _rested(self) -> Channel | None:
        """Return the connection that was used last, if one is still good."""
        now = asyncio.get_running_loop().time()
        while self._resting:
            channel = self._resting.pop()
            if channel.reusable and now - channel.rests_since < IDLE_SECONDS:
                return channel
            channel.abort()
        return None

    def _rest(self, channel: Channel) -> None:
        if not channel.reusable:
            return
        channel.rests_since = now = asyncio.get_running_loop().time()
        self._resting.append(channel)
        # What has rested longest lies at the other end.
        while self._resting and self._resting[0].rests_since < now - IDLE_SECONDS:
            self._resting.popleft().abort()

    async def _connect(self) -> Channel:
        end = self._endpoint
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, channel = await loop.create_connection(
                    lambda: Channel(end, self._channels),
                    end.host,
                    end.port,
                    ssl=end.tls,
                    server_hostname=end.server_name,
                )
        except TimeoutError:
            text = f"{end.url}: no connection within {CONNECT_SECONDS:g} s"
            raise Unreachable("Connection", text, acted=False) from None
        except (OSError, UnicodeError) as error:
            raise unreachable(end, error) from error
        return channel

    async def close(self) -> None:
        """Close all connections."""
        self._resting.clear()
        for channel in tuple(self._channels):
            channel.abort()
