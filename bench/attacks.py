"""What others wait for while one client attacks the embedded API server.

The four bombs of a kilobyte or two (YAML aliases, JSON-patch copies, a pattern, CEL) are thrown one
after the other for some seconds each, and 2,000 connections are held open without a word. Meanwhile
others list, read and create objects; the figure is the 99th percentile of what they wait.
"""

from __future__ import annotations

import multiprocessing
import resource
import socket
import ssl
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.support.apiserver import ApiServer
from tests.support.bombs import BOMBS, CRDS, TABLE, Bomb, bomb, crd

from bench.figure import Figure, NotMeasured

LIMIT = 100.0
SECONDS = 5.0
IDLE = 2_000
THROWN = ("YAML aliases", "JSON patch copies", "pattern of many states", "CEL loops")
MAPS = "/api/v1/namespaces/default/configmaps"


def run() -> list[Figure]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= hard < IDLE + 500:
        raise NotMeasured(f"a process may have {hard} open files here, {IDLE + 500} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as directory:
        server = ApiServer(Path(directory) / "cluster").start()
        try:
            _prepare(server)
            quiet = _percentile(server, "quiet", _nothing)
            figures = [
                _figure(f"others' p99 during {name}", _percentile(server, name, attack), quiet)
                for name, attack in _attacks(server)
            ]
        finally:
            server.kill()
    return figures


def _figure(name: str, value: float, quiet: float) -> Figure:
    return Figure(name, value, "ms", "lower", LIMIT).beside("no attack", quiet)


def _prepare(server: ApiServer) -> None:
    assert server.request("POST", CRDS, crd()).status == 201
    while server.request("POST", BOMBS, bomb("target", open={})).status not in (201, 409):
        time.sleep(0.05)
    for number in range(200):
        body = {"metadata": {"name": f"held-{number}"}, "data": {"a": "b" * 200}}
        assert server.request("POST", MAPS, body).status == 201


def _attacks(
    server: ApiServer,
) -> Iterator[tuple[str, Callable[[], AbstractContextManager[None]]]]:
    for name in THROWN:
        yield name, lambda name=name: _throwing(server, name)  # type: ignore[misc]
    yield f"{IDLE:,} idle connections", lambda: _idling(server)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _throwing(server: ApiServer, name: str) -> Iterator[None]:
    """Throw a bomb again and again, from a process of its own."""
    forking = multiprocessing.get_context("fork")
    over = forking.Event()
    process = forking.Process(target=_throw, args=(server, TABLE[name], over))
    process.start()
    try:
        yield
    finally:
        over.set()
        process.join(60)
    assert process.exitcode == 0, f"{name}: it was answered otherwise than expected"


def _throw(server: ApiServer, thrown: Bomb, over: Event) -> None:
    connection = server.connect()
    while not over.is_set():
        answer = server.request(
            thrown.method,
            thrown.path,
            thrown.body,
            content_type=thrown.content_type,
            connection=connection,
        )
        assert answer.status == thrown.code, answer.body


@contextmanager
def _idling(server: ApiServer) -> Iterator[None]:
    """Hold connections, half of them after the handshake of TLS."""
    context: ssl.SSLContext = server.context(certificate=False)
    with ExitStack() as stack:
        for number in range(IDLE):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            plain.settimeout(60)
            if number % 2:
                secure = context.wrap_socket(plain, server_hostname="127.0.0.1")
                stack.enter_context(secure)
        yield


def _percentile(
    server: ApiServer, name: str, attack: Callable[[], AbstractContextManager[None]]
) -> float:
    """Return the 99th percentile of what others wait, in milliseconds."""
    waits: list[float] = []
    made = count()
    asks: list[Callable[[], tuple[str, str, object]]] = [
        lambda: ("GET", MAPS, None),
        lambda: ("GET", f"{MAPS}/held-1", None),
        lambda: ("POST", MAPS, {"metadata": {"name": f"{abs(hash(name))}-{next(made)}"}}),
    ]
    with attack():
        end = time.monotonic() + SECONDS
        threads = [threading.Thread(target=_ask, args=(server, ask, end, waits)) for ask in asks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    return statistics.quantiles(waits, n=100)[98] * 1000


def _ask(
    server: ApiServer,
    ask: Callable[[], tuple[str, str, object]],
    end: float,
    waits: list[float],
) -> None:
    connection = server.connect()
    while time.monotonic() < end:
        method, path, body = ask()
        began = time.perf_counter()
        answer = server.request(method, path, body, connection=connection)
        waits.append(time.perf_counter() - began)
        assert answer.status in (200, 201), answer.body
        time.sleep(0.01)
    connection.close()
