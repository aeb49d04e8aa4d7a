"""Sending requests to one API server: credentials, deadlines, retries."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlencode

from lockstep.kube.config import ClusterConfig
from lockstep.kube.credentials import Credential, Credentials
from lockstep.kube.errors import ApiError, Unauthorized, Unreachable, from_response
from lockstep.kube.retry import Attempt, wait_before_retry
from lockstep.kube.transport import Request, Response, Stream, Transport

Observer = Callable[[str, int, float], None]
"""Told method, status (0 without an answer) and seconds of every attempt."""
TransportFactory = Callable[[ClusterConfig, Credential], Transport]

JSON = "application/json"
_SAFE = "/:@!$&'()*+,;=~%"
_PLAIN = re.compile(r"[A-Za-z0-9/._:-]*")


@lru_cache(maxsize=256)
def _query(params: tuple[tuple[str, str], ...]) -> str:
    return urlencode(params)


@dataclass(frozen=True, slots=True)
class Call:
    """A request as the client means it, before credentials."""

    method: str
    path: str
    params: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    repeatable: bool = True

    @property
    def target(self) -> str:
        """Return path and query as they go on the wire."""
        path = self.path if _PLAIN.fullmatch(self.path) else quote(self.path, safe=_SAFE)
        return f"{path}?{_query(tuple(self.params.items()))}" if self.params else path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def default_transport(config: ClusterConfig, credential: Credential) -> Transport:
    """Return pooled connections with the certificates of *config* and *credential*."""
    from lockstep.kube.http_transport import HttpTransport
    from lockstep.kube.tls import client_context

    tls = None
    if config.server.startswith("https:"):
        tls = client_context(
            ca=config.ca,
            certificate=credential.certificate,
            key=credential.key,
            insecure=config.insecure,
        )
    return HttpTransport(config.server, tls, server_name=config.tls_server_name)


class Connection:
    """One API server, over any transport; shared by all clients that are made from one."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        transport: TransportFactory = default_transport,
        rng: random.Random | None = None,
    ) -> None:
        self._config = config
        self._factory = transport
        self._credentials = Credentials(config)
        self._transport: Transport | None = None
        self._certificate: bytes | None = None
        self._retired: list[Transport] = []
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self.observer: Observer | None = None

    async def send(self, call: Call, deadline: float) -> bytes:
        """Return the body of the answer; fails after *deadline* seconds, retries included.

        Raises:
            ApiError: the subclass that says what went wrong.
        """
        end = asyncio.get_running_loop().time() + deadline
        try:
            async with asyncio.timeout(deadline):
                return await self._send_until(call, end)
        except TimeoutError:
            raise _too_late(call, deadline) from None

    async def _send_until(self, call: Call, end: float) -> bytes:
        number = 0
        while True:
            number += 1
            try:
                return (await self._attempt(call)).body
            except ApiError as error:
                attempt = Attempt(number, end - asyncio.get_running_loop().time(), call.repeatable)
                wait = wait_before_retry(error, attempt, self._rng)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def _attempt(self, call: Call) -> Response:
        transport, credential = await self._ready()
        try:
            return await self._once(transport, call, credential)
        except Unauthorized:
            if not self._credentials.refuse(credential):
                raise
        transport, credential = await self._ready()
        return await self._once(transport, call, credential)

    async def _once(self, transport: Transport, call: Call, credential: Credential) -> Response:
        started = time.perf_counter()
        status = 0
        try:
            response = await transport.send(_request(call, credential, self._config.acts_as))
            status = response.status
        finally:
            if self.observer is not None:
                self.observer(call.method, status, time.perf_counter() - started)
        if status >= 400:
            raise _error(response.status, response.headers, response.body, call)
        return response

    async def open(self, call: Call, deadline: float) -> Stream:
        """Return the answer as a stream, once its headers came within *deadline* seconds.

        Raises:
            ApiError: the subclass that says what went wrong; there are no retries.
        """
        try:
            async with asyncio.timeout(deadline):
                transport, credential = await self._ready()
                stream = await transport.open(_request(call, credential, self._config.acts_as))
                if stream.status < 400:
                    return stream
                body = b"".join([chunk async for chunk in stream.chunks()])
                await stream.close()
        except TimeoutError:
            raise _too_late(call, deadline) from None
        if stream.status == 401:
            self._credentials.refuse(credential)
        raise _error(stream.status, stream.headers, body, call)

    async def _ready(self) -> tuple[Transport, Credential]:
        credential = await self._credentials.current()
        if self._transport is None or credential.certificate != self._certificate:
            if self._transport is not None:
                # Requests may be under way on it; it is closed with the connection.
                self._retired.append(self._transport)
            self._transport = self._factory(self._config, credential)
            self._certificate = credential.certificate
        return self._transport, credential

    async def close(self) -> None:
        """Close every connection to the server."""
        for transport in (*self._retired, self._transport):
            if transport is not None:
                await transport.close()
        self._transport = None
        self._retired.clear()


def _request(call: Call, credential: Credential, acts_as: str) -> Request:
    headers = {"Accept": call.accept, "User-Agent": "lockstep"}
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    if credential.authorization is not None:
        headers["Authorization"] = credential.authorization
    if acts_as:
        headers["Impersonate-User"] = acts_as
    return Request(call.method, call.target, headers, call.body)


def _error(status: int, headers: Mapping[str, str], body: bytes, call: Call) -> ApiError:
    return from_response(status, body, retry_after=headers.get("Retry-After"), what=str(call))


def _too_late(call: Call, deadline: float) -> Unreachable:
    return Unreachable("Deadline", f"{call}: no answer within {deadline:g} s")
