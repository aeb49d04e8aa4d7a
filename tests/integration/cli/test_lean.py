"""The lean transport against servers that answer, break off, or are not there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from lockstep.cli.lean import LeanTransport, lean_transport
from lockstep.kube.config import ClusterConfig
from lockstep.kube.credentials import Credential
from lockstep.kube.errors import Unreachable
from lockstep.kube.http_transport import HttpTransport
from lockstep.kube.transport import Request

GET = Request("GET", "/version", {"Accept": "application/json"})
OK = b"HTTP/1.1 200 OK\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Gives each connection its next answers; an empty one breaks off."""

    def __init__(self, *connections: tuple[bytes, ...]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._connections = connections
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for answers in self._connections:
            connection, _ = self._socket.accept()
            with connection:
                for answer in answers:
                    connection.recv(65536)
                    connection.sendall(answer)

    def close(self) -> None:
        self._socket.close()
        self._thread.join(10)


@pytest.fixture
def refused() -> Iterator[str]:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def transport(url: str) -> LeanTransport:
    return LeanTransport(ClusterConfig(server=url), Credential())


async def test_it_answers_over_one_connection_and_headers_disregard_case() -> None:
    with closing(Server((OK, OK))) as server:
        lean = transport(server.url)
        for _ in range(2):
            answer = await lean.send(GET)
            assert (answer.status, answer.body) == (200, b"{}")
            assert answer.headers.get("retry-after") == "3"
        await lean.close()


async def test_it_connects_again_after_the_server_broke_off() -> None:
    with closing(Server((b"",), (OK,))) as server:
        lean = transport(server.url)
        with pytest.raises(Unreachable) as caught:
            await lean.send(GET)
        assert caught.value.acted
        assert (await lean.send(GET)).status == 200
        await lean.close()


async def test_a_refused_connection_certainly_did_nothing(refused: str) -> None:
    with pytest.raises(Unreachable, match="Connection refused") as caught:
        await transport(refused).send(GET)
    assert not caught.value.acted


def test_what_it_lacks_goes_over_the_usual_transport() -> None:
    config = ClusterConfig(server="http://127.0.0.1:1", tls_server_name="kubernetes")
    assert isinstance(lean_transport(config, Credential()), HttpTransport)
