"""Seeing from outside when pods get their nodes."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from dataclasses import dataclass, field

from tests.support.apiserver import ApiServer

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf;stream=watch"
MARKS = {JSON: b'"nodeName":"', PROTOBUF: b"PodScheduled"}
"""What only an event of a bound pod holds, and once."""


@dataclass
class BindWatch:
    """Counts the pods that get a node, as a watch shows them.

    It only counts marks in the stream, and asks for the encoding that the scheduler under test
    asks for: the server encodes an event once for all who want it the same way.
    """

    server: ApiServer
    encoding: str = JSON
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        version = self.server.request("GET", "/api/v1/pods?limit=1").json["metadata"]
        self._changed = threading.Condition()
        self._ended = False
        self._connection: http.client.HTTPSConnection = self.server.connect()
        self._connection.timeout = None
        self._connection.request(
            "GET",
            f"/api/v1/pods?watch=1&resourceVersion={version['resourceVersion']}",
            headers={"Accept": self.encoding},
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, count: int, deadline: float) -> float:
        """Return when the bind of that number was seen.

        Raises:
            TimeoutError: when fewer came within *deadline* seconds.
            ConnectionError: when the server ended the watch, as it does to slow readers.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self.times) >= count or self._ended, deadline)
            if len(self.times) >= count:
                return self.times[count - 1]
            seen = f"only {len(self.times)} of {count} pods were seen to be bound"
            raise ConnectionError(f"the watch ended: {seen}") if self._ended else TimeoutError(seen)

    def __enter__(self) -> BindWatch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def _read(self) -> None:
        mark = MARKS[self.encoding]
        answer = self._connection.getresponse()
        rest = b""
        while chunk := _read_some(answer):
            seen = (rest + chunk).count(mark)
            rest = chunk[-(len(mark) - 1) :]
            if seen:
                with self._changed:
                    self.times += [time.perf_counter()] * seen
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def _read_some(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(1 << 18)
    except (http.client.HTTPException, OSError):
        return b""  # the connection was closed under it
