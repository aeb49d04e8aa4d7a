"""Connections that do nothing keep nobody else out, and end in time."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import stretched

IDLE = 2_000


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as the test needs, where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < IDLE + 500:
        pytest.skip(f"a process may have {hard} open files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 500), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(api: ApiServer, *, certificate: bool) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", api.port), timeout=stretched(60))
    return api.context(certificate=certificate).wrap_socket(plain, server_hostname="127.0.0.1")


@contextmanager
def held(api: ApiServer, how: str, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        context = api.context(certificate=how == "known")
        for _ in range(count):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", api.port)))
            plain.settimeout(60)
            if how != "silent":
                secure = context.wrap_socket(plain, server_hostname="127.0.0.1")
                stack.enter_context(secure)
        yield


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize(
    ("how", "count"),
    [
        ("silent", IDLE),
        ("unknown", 600),
        pytest.param("unknown", IDLE, marks=pytest.mark.soak),
        pytest.param("known", IDLE, marks=pytest.mark.soak),
    ],
)
def test_others_are_served_while_many_connections_idle(
    shared_server: ApiServer, how: str, count: int
) -> None:
    with held(shared_server, how, count):
        for number in range(20):
            name = f"{how}-{count}-{number}"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            made = shared_server.request("POST", "/api/v1/namespaces/default/configmaps", body)
            assert made.status == 201
            assert shared_server.request("GET", "/livez").status == 200


def test_a_half_sent_head_is_closed(shared_server: ApiServer) -> None:
    with connect(shared_server, certificate=False) as line:
        line.sendall(b"GET /livez HTTP/1.1\r\nHost: ")
        assert line.recv(100) == b""


def test_a_body_is_not_awaited_from_a_stranger(shared_server: ApiServer) -> None:
    with connect(shared_server, certificate=False) as line:
        line.sendall(
            b"POST /api/v1/namespaces HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"
        )
        assert line.recv(100).startswith(b"HTTP/1.1 401 ")


def test_a_line_feed_in_a_target_goes_nowhere(shared_server: ApiServer) -> None:
    with connect(shared_server, certificate=True) as line:
        line.sendall(b"GET /api/v1/nodes?command=x\nEvil:1 HTTP/1.1\r\nHost: h\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 400 ")
