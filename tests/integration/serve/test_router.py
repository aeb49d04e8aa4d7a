"""The router's data path: a real socket on either side, routes and pods put in by hand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.waiting import eventually, stretched

from lockstep.api.core import Pod, PodStatus
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL
from lockstep.api.serving import Backend, HoldQueue, Route, RouteSpec
from lockstep.keys.authority import self_signed
from lockstep.kube.cache import Change
from lockstep.serve.router.authentication import BadTokens, TokenAuthenticator
from lockstep.serve.router.guard import Guard, NotSafe
from lockstep.serve.router.protocol import ClientSide
from lockstep.serve.router.sorting import Sorting
from lockstep.serve.router.table import Table

READ = 20.0


class Echo(asyncio.Protocol):
    """A replica: answers each request with its body, once it may."""

    may = asyncio.Event()
    requests: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, mark, body = self.data.partition(b"\r\n\r\n")
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if mark and len(body) >= length:
            self.requests.append(self.data)
            self.data = b""
            self.task = asyncio.ensure_future(self.answer(body))

    async def answer(self, body: bytes) -> None:
        await self.may.wait()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)  # type: ignore[attr-defined]


class Router:
    """A table behind a listening socket."""

    def __init__(self) -> None:
        self.table = Table("", lambda lane, urgent: None)
        self.port = 0
        self.replica_port = 0
        self.writers: list[asyncio.StreamWriter] = []

    def route(self, **spec: object) -> None:
        backend = Backend(revision="r", port=self.replica_port)
        meta = ObjectMeta(name="iris", namespace="n", uid="u")
        made = Route(metadata=meta, spec=RouteSpec(backends=[backend], **spec))  # type: ignore[arg-type]
        self.table.on_route(Change(None, made))

    def replica(self) -> None:
        labels = {ROUTE_LABEL: "iris", REVISION_LABEL: "r"}
        meta = ObjectMeta(name="iris-0", namespace="n", uid="p", labels=labels)
        ready = Condition(type="Ready", status="True")
        status = PodStatus(phase="Running", pod_ip="127.0.0.1", conditions=[ready])
        self.table.on_pod(Change(None, Pod(metadata=meta, status=status)))

    async def send(
        self, data: bytes, tls: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)
        writer.write(data)
        self.writers.append(writer)  # a writer that nobody holds closes its connection
        return reader, writer


@asynccontextmanager
async def running(
    authenticator: TokenAuthenticator | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Router]:
    router, clients = Router(), set[ClientSide]()
    loop = asyncio.get_running_loop()
    Echo.may, Echo.requests = asyncio.Event(), []
    Echo.may.set()
    echo = await loop.create_server(Echo, "127.0.0.1", 0)
    router.replica_port = echo.sockets[0].getsockname()[1]
    server = await loop.create_server(
        lambda: ClientSide(
            router.table.find,
            router.table.unknown,
            clients,
            Sorting(router.table.lanes),
            authenticator,
        ),
        "127.0.0.1",
        0,
        ssl=tls,
    )
    router.port = server.sockets[0].getsockname()[1]
    try:
        yield router
    finally:
        server.close()
        echo.close()


def post(body: bytes, *more: bytes, path: bytes = b"/serving/n/iris/x") -> bytes:
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: h", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def head(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(stretched(READ)):
        return await reader.readuntil(b"\r\n\r\n")


async def test_requests_of_one_connection_are_answered_in_their_order() -> None:
    async with running() as router:
        router.route()
        router.replica()
        reader, _ = await router.send(post(b"one") + post(b"three"))
        for body in (b"one", b"three"):
            assert (await head(reader)).startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(len(body)) == body
        assert Echo.requests[0].startswith(b"POST /x HTTP/1.1\r\n")


async def test_a_request_is_held_until_a_replica_is_there() -> None:
    async with running() as router:
        router.route()
        reader, _ = await router.send(post(b"held"))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, READ)
        assert lane.load().held == 1
        router.replica()
        assert (await head(reader)).startswith(b"HTTP/1.1 200")
        assert await reader.readexactly(4) == b"held"
        assert (lane.load().held, lane.load().in_flight) == (0, 0)


async def test_a_full_queue_refuses_with_the_time_to_come_back() -> None:
    async with running() as router:
        router.route(hold=HoldQueue(requests=1))
        await router.send(post(b"a"))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, READ)
        reader, _ = await router.send(post(b"b"))
        said = await head(reader)
        assert said.startswith(b"HTTP/1.1 429")
        assert b"Retry-After: 1" in said
        assert lane.load().refused == 1


async def test_a_closed_route_holds_and_an_open_one_sends() -> None:
    async with running() as router:
        router.route(closing="zero-1")
        router.replica()
        reader, _ = await router.send(post(b"x"))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, READ)
        assert (lane.load().closed, lane.load().in_flight) == ("zero-1", 0)
        router.route()
        assert (await head(reader)).startswith(b"HTTP/1.1 200")


async def test_one_replica_gets_no_more_than_its_concurrency() -> None:
    async with running() as router:
        Echo.may.clear()
        router.route(concurrency=1)
        router.replica()
        first, _ = await router.send(post(b"1"))
        second, _ = await router.send(post(b"2"))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting and lane.in_flight and Echo.requests, READ)
        assert len(Echo.requests) == 1
        Echo.may.set()
        for reader in (first, second):
            assert (await head(reader)).startswith(b"HTTP/1.1 200")


async def test_a_client_that_leaves_is_forgotten() -> None:
    async with running() as router:
        router.route()
        _, writer = await router.send(post(b"gone"))
        lane = router.table.lanes["n/iris"]
        await eventually(lambda: lane.waiting, READ)
        writer.transport.abort()
        await eventually(lambda: not lane.waiting, READ)
        assert lane.held_bytes == 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post(b"ab", b"Content-Length: 1"), b"400"),
        (post(b"ab", b"Transfer-Encoding: chunked"), b"400"),
        (post(b"", b"Transfer-Encoding: gzip, chunked"), b"400"),
        (post(b"", b"Host: other"), b"400"),
        (b"POST /serving/n/iris/x HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"400"),
        (b"GARBAGE\r\n\r\n", b"400"),
        (post(b"", b"X: " + b"a" * 70_000), b"431"),
        (post(b"", path=b"/serving/n/other/x"), b"404"),
    ],
)
async def test_what_is_ambiguous_or_unknown_reaches_no_replica(
    request_: bytes, status: bytes
) -> None:
    async with running() as router:
        router.route()
        router.replica()
        reader, _ = await router.send(request_)
        assert (await head(reader)).split(b" ")[1] == status
        assert Echo.requests == []


ALL, MINE, OTHER = "a" * 20, "b" * 20, "c" * 20


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A certificate of its own, and tokens for all namespaces, for n and for m."""
    certificate, key = self_signed("localhost")
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    (tmp_path / "tokens").write_text(f"# of the team\n{ALL}\n{MINE} n,x\n{OTHER} m\n")
    return Guard(tmp_path / "crt", tmp_path / "key", tmp_path / "tokens")


@pytest.mark.parametrize(
    ("authorization", "path", "status"),
    [
        (b"", b"/serving/n/iris/x", 401),
        (b"Authorization: Bearer wrong", b"/serving/n/iris/x", 401),
        (f"Authorization: Basic {ALL}".encode(), b"/serving/n/iris/x", 401),
        (f"Authorization: Bearer {ALL}".encode(), b"/serving/n/iris/x", 200),
        (f"authorization: bearer {MINE}".encode(), b"/serving/n/iris/x", 200),
        (f"Authorization: Bearer {OTHER}".encode(), b"/serving/n/iris/x", 403),
        (f"Authorization: Bearer {OTHER}".encode(), b"/openai/v1/chat/completions", 404),
        (f"Authorization: Bearer {MINE}".encode(), b"/openai/v1/chat/completions", 200),
        (b"", b"/openai/v1/chat/completions", 401),
    ],
)
async def test_beyond_loopback_a_token_opens_its_namespaces_over_tls(
    guard: Guard, authorization: bytes, path: bytes, status: int
) -> None:
    assert guard.tokens is not None
    async with running(TokenAuthenticator(guard.tokens), guard.context()) as router:
        router.route(models=["llama"])
        router.replica()
        trust = ssl.create_default_context(cafile=guard.certificate)
        trust.check_hostname = False
        more = [authorization] if authorization else []
        reader, _ = await router.send(post(b'{"model": "llama"}', *more, path=path), trust)
        said = await head(reader)
        assert said.startswith(b"HTTP/1.1 %d" % status)
        assert (status == 401) == (b"WWW-Authenticate: Bearer" in said)
        # The token is for the router: no replica sees it.
        assert not any(b"earer" in one for one in Echo.requests)
        assert len(Echo.requests) == (status == 200)


def test_tokens_are_read_again_and_a_broken_file_changes_nothing(guard: Guard) -> None:
    assert guard.tokens is not None
    authenticator = TokenAuthenticator(guard.tokens)
    shown = [(b"Authorization", b"Bearer " + MINE.encode())]
    assert authenticator.allowed_namespaces(shown) == {"n", "x"}
    guard.tokens.write_text("short\n")
    with pytest.raises(BadTokens, match="line 1: a token has at least 16"):
        authenticator.read()
    assert authenticator.allowed_namespaces(shown) == {"n", "x"}
    guard.tokens.write_text(f"{MINE}\n")
    assert authenticator.read()
    assert authenticator.allowed_namespaces(shown) == frozenset()
    assert authenticator.allowed_namespaces([*shown, *shown]) is None


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (("tokens",), "--tokens"),
        (("certificate", "key"), "--certificate"),
        (("key",), "--certificate, --key: give both"),
    ],
)
def test_a_router_beyond_loopback_needs_tls_and_tokens(
    guard: Guard, missing: tuple[str, ...], says: str
) -> None:
    with pytest.raises(NotSafe, match=says):
        replace(guard, **dict.fromkeys(missing)).check("192.0.2.1")
    guard.check("192.0.2.1")
    Guard().check("127.0.0.1")
