"""What must not break the console: odd requests at every endpoint, and sign-ins that lie."""

from __future__ import annotations

import random
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.support.apiserver import ApiServer
from tests.support.console import Console, Visitor

WORDS = (
    "", "-", ".", "..", "%2e%2e", "a", "A", "x" * 300, "%00", "%ff", "é", "<script>", "'\"`",
    "jobs", "nodes", "queues", "notebooks", "default", "-1", "1e9", "٣", "\u202eabc", "null",
)  # fmt: skip
BODIES = (
    b"", b"{", b"null", b"[]", b"{}", b'"x"', b"\xff\xfe", b"[" * 5000, b'{"form": null}',
    b'{"form": {"command": []}}', b'{"form": {"command": "x", "workers": 1e400}}',
    b'{"object": {}}', b'{"object": {"kind": 1, "metadata": 3}}', b'{"yaml": "a: ["}',
    b'{"yaml": "apiVersion: v1\\nkind: Pod\\nmetadata: []"}', b'{"sdk": "Trainer(command=[1])"}',
    b'{"patch": []}', b'{"patch": {"metadata": 1}, "version": "x"}', b'{"queues": {"x": {}}}',
    b'{"object": {"apiVersion": "lockstep.dev/v1alpha1", "kind": "TrainingJob", "spec": 7}}',
    b'{"namespace": "default", "pod": "x", "port": 99999999999999999999}',
    b'{"stream": "x", "topics": ["\\u0000"]}',
    b'{"token": "\\ud800"}', b'{"code": "' + b"x" * 43 + b'"}',
)  # fmt: skip
READ = (
    "/api/session", "/api/jobs", "/api/lists/{}", "/api/csv/{}", "/api/cost", "/api/cost/{}/{}",
    "/api/rights", "/api/audit", "/api/queues", "/api/objects/{}/{}/{}", "/{}", "/static/{}",
    "/oidc/start", "/oidc/callback",
)  # fmt: skip
WRITTEN = (
    "/api/session", "/api/topics", "/api/jobs", "/api/objects", "/api/objects/{}/{}/{}",
    "/api/drain/{}", "/api/render", "/api/what-if", "/api/plan", "/api/apps",
)  # fmt: skip
QUERIES = ("q", "sort", "phase", "offset", "limit", "namespace", "by", "days", "uid", "state")
TOPICS = ("jobs?q={}", "list/{}?sort={}", "object/{}/{}/{}", "job/{}/{}", "logs/{}/{}?pod={}", "{}",
          "node/{}", "nodes?offset={}", "ranks/{}/{}", "//[{}")  # fmt: skip


@pytest.fixture(scope="module")
def console(
    shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    running = Console(shared_server, tmp_path_factory.mktemp("console"))
    yield running
    running.stop()


def filled(pattern: str, chosen: random.Random) -> str:
    while "{}" in pattern:
        pattern = pattern.replace("{}", quote(chosen.choice(WORDS), safe="%"), 1)
    return pattern


def test_no_request_makes_the_console_fail(console: Console) -> None:
    """Every endpoint with every method, body and odd word: an error has words and is no 5xx."""
    chosen = random.Random(7)  # noqa: S311 - the same requests each time
    visitor = console.visitor(code=console.code())
    cookie = visitor.cookie
    for number in range(500):
        visitor.cookie = cookie if number % 5 else ""
        if number % 2:
            method, path = "GET", filled(chosen.choice(READ), chosen)
            path += f"?{chosen.choice(QUERIES)}={filled('{}', chosen)}"
            answer = visitor.request(method, path)
        else:
            method = chosen.choice(("POST", "PUT", "PATCH", "DELETE"))
            path = filled(chosen.choice(WRITTEN), chosen)
            body = (
                b'{"check": true, "token": "none"}' if method == "DELETE" else chosen.choice(BODIES)
            )
            if (method, path) == ("DELETE", "/api/session"):
                continue
            answer = visitor.request(method, path, body)
        assert answer.status < 500, (method, path, answer.body)


def test_no_topic_makes_the_stream_fail(console: Console) -> None:
    chosen = random.Random(8)  # noqa: S311 - the same requests each time
    visitor = console.visitor(code=console.code())
    for _ in range(60):
        topics = [filled(chosen.choice(TOPICS), chosen)]
        answer = visitor.request("POST", "/api/topics", {"stream": "none", "topics": topics})
        assert answer.status in (400, 404), (topics, answer.body)


def test_a_header_of_no_trusted_proxy_names_nobody(console: Console) -> None:
    visitor = Visitor(console.url)
    for header in ("X-Forwarded-User", "X-Remote-User", "Impersonate-User"):
        assert visitor.request("GET", "/api/session", headers={header: "admin"}).status == 401


def test_a_change_is_in_the_audit_with_user_and_address(console: Console) -> None:
    visitor = console.visitor(code=console.code())
    visitor.request("DELETE", "/api/objects/jobs/default/never-there")
    found = visitor.request("GET", "/api/audit?q=never-there").json["items"][0]
    assert (found["verb"], found["status"], found["from"]) == ("delete", 404, "127.0.0.1")
    assert found["user"]
