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
PODS = "/api/v1/pods"


@dataclass
class BindWatch:
    """Counts the pods that get a node, as a watch shows them; a context manager.

    It only counts marks in the stream, and asks for the encoding that the scheduler under test
    asks for: the server encodes an event once for all who want it the same way.
    """

    server: ApiServer
    encoding: str = JSON
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._ending = False
        self._before, version = self._list()
        self._connection = self._follow(version)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> BindWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending = True
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def wait(self, count: int, deadline: float) -> float:
        """Return when the bind of that number was seen.

        Raises:
            TimeoutError: when fewer came within *deadline* seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.times) >= count, deadline):
                there = self._list()[0] - self._before
                text = f"saw {len(self.times)} of {count} pods bound; the server holds {there}"
                raise TimeoutError(text)
            return self.times[count - 1]

    def _list(self) -> tuple[int, str]:
        """Return how many pods have nodes, and as of which version."""
        answer = self.server.request("GET", PODS)
        return answer.body.count(MARKS[JSON]), answer.json["metadata"]["resourceVersion"]

    def _follow(self, version: str) -> http.client.HTTPSConnection:
        connection = self.server.connect()
        connection.timeout = None
        path = f"{PODS}?watch=1&resourceVersion={version}"
        connection.request("GET", path, headers={"Accept": self.encoding})
        return connection

    def _read(self) -> None:
        mark = MARKS[self.encoding]
        while not self._ending:
            answer = self._connection.getresponse()
            rest = b""
            while chunk := _read_some(answer):
                self._note((rest + chunk).count(mark))
                rest = (rest + chunk)[-(len(mark) - 1) :]
            if not self._ending:
                # The server ends the watch of whoever falls behind, as this may for once.
                bound, version = self._list()
                self._note(bound - self._before - len(self.times))
                self._connection = self._follow(version)

    def _note(self, seen: int) -> None:
        if seen > 0:
            with self._changed:
                self.times += [time.perf_counter()] * seen
                self._changed.notify_all()


def _read_some(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read1(1 << 18)
    except (http.client.HTTPException, OSError):
        return b""  # the connection was closed under it
