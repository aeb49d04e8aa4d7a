"""A machine's end is known from what its metadata service says, in each cloud's words."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lockstep.train import notices
from lockstep.train.notices import CLOUDS, Source, noticed, source, watch


@contextmanager
def answering(status: int, text: str, asked: list[tuple[str, str]] | None = None) -> Iterator[str]:
    """A fake metadata service that gives one answer."""

    class Answer(BaseHTTPRequestHandler):
        def _say(self) -> None:
            if asked is not None:
                asked.append((self.command, self.headers.get("X-aws-ec2-metadata-token", "")))
            self.send_response(status)
            self.end_headers()
            if status != 204:
                self.wfile.write(b"token" if self.command == "PUT" else text.encode())

        do_GET = do_PUT = _say

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


AZURE = '{"Events": [{"EventType": "%s"}]}'


@pytest.mark.parametrize(
    ("cloud", "status", "text", "goes"),
    [
        ("aws", 404, "", False),
        ("aws", 200, '{"action": "terminate"}', True),
        ("gcp", 200, "FALSE", False),
        ("gcp", 200, "TRUE", True),
        ("azure", 200, '{"Events": []}', False),
        ("azure", 200, AZURE % "Reboot", False),
        ("azure", 200, AZURE % "Preempt", True),
        ("azure", 200, "not json", False),
        ("url", 204, "", False),
        ("url", 200, "at noon", True),
        ("url", 500, "broken", False),
    ],
)
def test_each_cloud_has_its_own_words(cloud: str, status: int, text: str, goes: bool) -> None:
    asked: list[tuple[str, str]] = []
    with answering(status, text, asked) as url:
        where = CLOUDS.get(cloud, Source(url))
        token = url if where.token else ""
        said = noticed(Source(url, where.headers, where.means, token))
    assert bool(said) == goes
    if cloud == "aws" and status == 200:
        assert asked == [("PUT", ""), ("GET", "token")]


def test_a_service_that_does_not_answer_gives_no_notice() -> None:
    with answering(200, "x") as url:
        pass
    assert noticed(Source(url)) == ""


def test_the_notice_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "EVERY", 0.0)
    told: queue.Queue[str] = queue.Queue()
    with answering(200, "at\nnoon") as url:
        watch(url, told.put)
        assert told.get(timeout=60) == "at noon"
    assert told.empty()


def test_what_is_no_source_is_none() -> None:
    assert source("here") is None
    assert source("gcp") is CLOUDS["gcp"]
