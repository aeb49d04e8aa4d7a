"""The small server of probes and scrapes: what it answers to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from lockstep.kube.listener import AT_ONCE, HEAD_LIMIT, LOOPBACK, listener
from lockstep.runtime.health import Health

PROBLEMS = ["pods: connection refused by 10.0.0.1"]


async def ask(port: int, head: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(head)
    try:
        said = await reader.read()
    except ConnectionResetError:
        said = b""
    writer.close()
    first, _, rest = said.partition(b"\r\n")
    return int(first.split()[1]) if first else 0, rest.partition(b"\r\n\r\n")[2]


@pytest.fixture
def problems() -> list[str]:
    return []


@pytest.fixture(params=["tell", "probe"])
async def port(request: pytest.FixtureRequest, problems: list[str]) -> AsyncIterator[int]:
    health = Health(lambda: problems, lambda: b"m 1\n")
    server = listener(getattr(health, request.param))
    yield await server.bind(LOOPBACK, 0)
    await server.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        (b"GET /readyz?verbose HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (b"GET /secret HTTP/1.1\r\nHost: h\r\n\r\n", 404),
        (b"POST /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n", 431),
    ],
)
async def test_what_is_answered(port: int, head: bytes, status: int) -> None:
    assert (await ask(port, head))[0] == status


async def test_head_has_no_body(port: int) -> None:
    assert await ask(port, b"HEAD /healthz HTTP/1.1\r\nHost: h\r\n\r\n") == (200, b"")


@pytest.mark.parametrize(
    ("port", "body"),
    [("tell", PROBLEMS[0].encode() + b"\n"), ("probe", b"not ready\n")],
    indirect=["port"],
)
async def test_strangers_do_not_learn_why_a_process_is_not_ready(
    port: int, problems: list[str], body: bytes
) -> None:
    problems += PROBLEMS
    assert await ask(port, b"GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n") == (503, body)


@pytest.mark.parametrize(("port", "status"), [("tell", 200), ("probe", 404)], indirect=["port"])
async def test_metrics_are_for_this_machine(port: int, status: int) -> None:
    assert (await ask(port, b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == status


@pytest.mark.parametrize("port", ["probe"], indirect=True)
async def test_connections_that_say_nothing_are_bounded(port: int) -> None:
    silent = [await asyncio.open_connection(LOOPBACK, port) for _ in range(AT_ONCE)]
    assert (await ask(port, b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"))[0] == 503
    for _, writer in silent:
        writer.close()
        await writer.wait_closed()
