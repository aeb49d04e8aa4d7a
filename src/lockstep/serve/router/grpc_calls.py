"""gRPC through the router: streams of bytes either way, which are not decoded.

A call goes to the service that its metadata name as ``lockstep-service: NAMESPACE/NAME``; without
them, to the one that is called like the model in its first message.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import grpc

from lockstep.serve.core.choice import NO_HINTS
from lockstep.serve.router.authentication import TokenAuthenticator, within
from lockstep.serve.router.lane import Lane, Replica

SERVICE: Final = "lockstep-service"
MOST_BYTES: Final = 1 << 30
_ALIVE: Final = ("/inference.GRPCInferenceService/ServerLive",)
_READY: Final = ("/inference.GRPCInferenceService/ServerReady",)
_TRUE: Final = b"\x08\x01"
_STATUS: Final = {
    404: grpc.StatusCode.NOT_FOUND,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
)
Context = Any
Metadata = dict[str, Any]
Find = Callable[[str, str], Lane | str]
"""From the stated service and the model's name the lane, or what is wrong."""


def model(message: bytes) -> str:
    """Return the first field of a message, where the protocol has the model's name."""
    if not message.startswith(b"\x0a"):
        return ""
    size = shift = 0
    for at in range(1, min(len(message), 6)):
        size |= (message[at] & 0x7F) << shift
        shift += 7
        if message[at] < 0x80:
            name = message[at + 1 : at + 1 + size]
            return name.decode("utf-8", "replace") if len(name) == size <= 256 else ""
    return ""


def find(lanes: dict[str, Lane], stated: str, name: str) -> Lane | str:
    """Return the lane of a call, or in words why there is none."""
    if stated:
        there = ", ".join(sorted(lanes)[:10]) or "none"
        return lanes.get(stated) or f"no service {stated}; there are: {there}"
    found = [lane for key, lane in lanes.items() if key.partition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    keys = ", ".join(sorted(one.key for one in found or lanes.values())[:10]) or "none"
    what = f"several services are called {name!r}" if found else f"no service is called {name!r}"
    return f"{what}: {keys}; say which in the metadata: {SERVICE}: NAMESPACE/NAME"


class GrpcCalls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Takes every call and passes it on."""

    def __init__(self, find: Find, authenticator: TokenAuthenticator | None = None) -> None:
        self._find, self._authenticator = find, authenticator
        self._channels: dict[tuple[str, int], grpc.aio.Channel] = {}

    async def listen(
        self, host: str, port: int, pair: tuple[bytes, bytes] | None = None
    ) -> tuple[grpc.aio.Server, int]:
        """Take calls at *port*, or at a free one where that is taken.

        *pair* is the key and the certificate for TLS.
        """
        server = grpc.aio.server(options=(*_OPTIONS, ("grpc.so_reuseport", 0)))
        server.add_generic_rpc_handlers((self,))
        credentials = grpc.ssl_server_credentials([pair]) if pair is not None else None

        def bind(number: int) -> int:
            address = f"{host}:{number}"
            if credentials is None:
                return int(server.add_insecure_port(address))
            return int(server.add_secure_port(address, credentials))

        try:
            bound = bind(port)
        except RuntimeError:
            bound = bind(0)
        await server.start()
        return server, bound

    def service(self, details: Any) -> Any:
        """Return what handles a call of any method."""
        method, metadata = details.method, dict(details.invocation_metadata)

        async def handle(messages: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
            async for message in self._carry(method, metadata, messages, context):
                yield message

        return grpc.stream_stream_rpc_method_handler(handle)

    async def _carry(
        self,
        method: str,
        metadata: Metadata,
        messages: AsyncIterator[bytes],
        context: Context,
    ) -> AsyncIterator[bytes]:
        namespaces = frozenset[str]()
        if self._authenticator is not None:
            opened = _allowed(self._authenticator, metadata)
            if opened is None:
                text = "a token is needed in the metadata: authorization: Bearer TOKEN"
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)
                return
            namespaces = opened
        first = await anext(aiter(messages), None)
        stated = str(metadata.get(SERVICE, ""))
        if first == b"" and not stated and method in (*_ALIVE, *_READY):
            yield _TRUE
            return
        lane = self._find(stated, model(first or b""))
        if isinstance(lane, str):
            await context.abort(grpc.StatusCode.NOT_FOUND, lane)
            return
        if not within(lane.key, namespaces):
            text = f"the token is not for services of {lane.key.partition('/')[0]}"
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, text)
            return
        try:
            replica = await _replica(lane, first or b"")
        except _Refused as error:
            await context.abort(_STATUS.get(error.status, grpc.StatusCode.UNAVAILABLE), str(error))
            return
        asked = (method, metadata, context.time_remaining())
        failed: _Ended | None = None
        try:
            call = self._call(asked, _requests(first, messages), lane, replica)
            async for message in _passed(call, lane, replica, context):
                yield message
        except _Ended as end:
            failed = end
        finally:
            # Before the client learns of the end: it may count, or call again, at once.
            lane.done(replica)
        if failed is not None:
            await context.abort(*failed.args)

    def _call(
        self,
        asked: tuple[str, Metadata, float | None],
        messages: AsyncIterator[bytes],
        lane: Lane,
        replica: Replica,
    ) -> Any:
        """Call *replica*; *asked* are method, metadata and the seconds that the client allows.

        Raises:
            _Ended: when it takes no gRPC.
        """
        if not replica.grpc_port:
            text = f"the replicas of {lane.key} declare no port named h2c or grpc"
            raise _Ended(grpc.StatusCode.UNIMPLEMENTED, text)
        method, metadata, left = asked
        return self._channel(replica).stream_stream(method)(
            messages,
            metadata=[(k, v) for k, v in metadata.items() if k not in ("user-agent", SERVICE)],
            timeout=left if left else lane.spec.timeout,
        )

    def _channel(self, replica: Replica) -> grpc.aio.Channel:
        key = (replica.pool.host, replica.grpc_port)
        found = self._channels.get(key)
        if found is None:
            found = grpc.aio.insecure_channel(f"{key[0]}:{key[1]}", options=_OPTIONS)
            self._channels[key] = found
        return found

    async def forget(self, known: Iterable[tuple[str, int]]) -> None:
        """Close the channels to replicas that are not among *known*."""
        keep = set(known)
        for key in [key for key in self._channels if key not in keep]:
            with contextlib.suppress(Exception):
                await self._channels.pop(key).close(grace=5.0)


_CALLERS_OWN: Final = frozenset(
    (
        grpc.StatusCode.OK,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
    )
)
"""Codes that do not speak against a replica."""


async def _requests(first: bytes | None, messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first is not None:
        yield first
    async for message in messages:
        yield message


async def _passed(
    call: Any, lane: Lane, replica: Replica, context: Context
) -> AsyncIterator[bytes]:
    """Yield what the replica answers; its metadata go to the client as well.

    Raises:
        _Ended: when the replica ended the call with an error.
    """
    status = 200
    try:
        await context.send_initial_metadata(_plain(await call.initial_metadata()))
        async for message in call:
            yield message
        context.set_trailing_metadata(_plain(await call.trailing_metadata()))
        code, details = await call.code(), await call.details()
        status = 200 if code in _CALLERS_OWN else 502
        if code is not grpc.StatusCode.OK:
            raise _Ended(code, details or "")
    except grpc.aio.AioRpcError as error:
        status = 200 if error.code() in _CALLERS_OWN else 502
        trailing = _plain(error.trailing_metadata())
        raise _Ended(error.code(), error.details() or "", trailing) from None
    finally:
        call.cancel()
        lane.answered(replica, status)


def _plain(metadata: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((key, value) for key, value in metadata or ())


class _Ended(Exception):
    """A call that ended with an error: its code, words and metadata are the arguments."""


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Wait:
    """A call that waits for its replica."""

    def __init__(self, lane: Lane, first: bytes) -> None:
        self._lane = lane
        self.held_bytes = len(first)
        self.hints = NO_HINTS
        self.replica: asyncio.Future[Replica] = asyncio.get_running_loop().create_future()

    def go(self, replica: Replica) -> None:
        """Take *replica*; give it back at once if the client is gone meanwhile."""
        if self.replica.done():
            asyncio.get_running_loop().call_soon(self._lane.done, replica)
        else:
            self.replica.set_result(replica)

    def refuse(self, status: int, message: str, retry_after: int = 0) -> None:
        """Take that there is none."""
        if not self.replica.done():
            self.replica.set_exception(_Refused(status, message))

    def leave(self) -> None:
        """Give back what it has or waits for, since its client is gone."""
        taken = self.replica.done() and not self.replica.cancelled()
        if taken and self.replica.exception() is None:
            self._lane.done(self.replica.result())
        else:
            self._lane.forget(self)


def _allowed(authenticator: TokenAuthenticator, metadata: Metadata) -> frozenset[str] | None:
    """Take the token out of the metadata; return the namespaces it may reach, None for no call."""
    token = metadata.pop("authorization", b"")
    value = token if isinstance(token, bytes) else token.encode()
    return authenticator.allowed_namespaces([(b"authorization", value)])


async def _replica(lane: Lane, first: bytes) -> Replica:
    """Return the replica for a request that begins with *first*, once one is free.

    Raises:
        _Refused: when the lane takes no more requests.
    """
    wait = _Wait(lane, first)
    lane.admit(wait)
    try:
        return await wait.replica
    except asyncio.CancelledError:
        wait.leave()
        raise
