"""Discovery, version, health, metrics and OpenAPI, in the forms that clients ask for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

DOCUMENTS = [
    ("/api", {}, "APIVersions"),
    ("/api/", {}, "APIVersions"),
    ("/apis", {}, "APIGroupList"),
    ("/apis/", {}, "APIGroupList"),
    ("/api/v1", {}, "APIResourceList"),
    ("/api/v1/", {}, "APIResourceList"),
    ("/apis/apps", {}, "APIGroup"),
    ("/apis/apps/v1", {}, "APIResourceList"),
    ("/apis/apps/v1/", {}, "APIResourceList"),
    ("/api", {"Accept": f"{AGGREGATED},application/json"}, "APIGroupDiscoveryList"),
    ("/apis", {"Accept": f"{AGGREGATED},application/json"}, "APIGroupDiscoveryList"),
]


@pytest.mark.parametrize(("path", "headers", "kind"), DOCUMENTS)
def test_discovery(shared_server: ApiServer, path: str, headers: dict[str, str], kind: str) -> None:
    answer = shared_server.request("GET", path, headers=headers)
    assert (answer.status, answer.json["kind"]) == (200, kind)


TEXTS = [
    ("/livez", 200, "ok"),
    ("/healthz", 200, "ok"),
    ("/readyz?verbose", 200, "readyz check passed"),
    ("/readyz?verbose", 200, "[+]ping ok"),
    ("/livez/ping", 200, "ok"),
    ("/livez/nothing", 404, "404 page not found"),
    ("/metrics", 200, 'apiserver_storage_objects{resource="namespaces"} 4.0'),
    ("/metrics", 200, "apiserver_request_total"),
    ("/version", 200, '"gitVersion":"v1.'),
    ("/version/", 200, '"gitVersion":"v1.'),
    ("/openapi/v3", 200, "/openapi/v3/apis/apps/v1?hash="),
    ("/openapi/v3/apis/apps/v1", 200, "io.k8s.api.apps.v1.Deployment"),
    ("/openapi/v2", 200, '"swagger":"2.0"'),
    ("/nothing", 404, "404 page not found"),
]


@pytest.mark.parametrize(("path", "code", "text"), TEXTS)
def test_system_paths(shared_server: ApiServer, path: str, code: int, text: str) -> None:
    answer = shared_server.request("GET", path)
    assert answer.status == code
    assert text in answer.body.decode()


def test_the_older_openapi_document_is_protobuf_for_those_who_ask(
    shared_server: ApiServer,
) -> None:
    kind = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    answer = shared_server.request("GET", "/openapi/v2", headers={"Accept": kind})
    assert answer.headers["Content-Type"] == kind
    # Field 1, the version of the format, and nothing else.
    assert answer.body == b"\x0a\x032.0"


def test_openapi_documents_are_not_sent_twice(shared_server: ApiServer) -> None:
    first = shared_server.request("GET", "/openapi/v3/apis/batch/v1")
    headers = {"If-None-Match": first.headers["ETag"]}
    again = shared_server.request("GET", "/openapi/v3/apis/batch/v1", headers=headers)
    assert (again.status, again.body) == (304, b"")


def test_yaml_is_answered_on_request(shared_server: ApiServer) -> None:
    answer = shared_server.request(
        "GET", "/api/v1/namespaces/default", headers={"Accept": "application/yaml"}
    )
    assert answer.headers["Content-Type"] == "application/yaml"
    assert "kind: Namespace" in answer.body.decode()


def test_both_event_groups_show_the_same_events(shared_server: ApiServer) -> None:
    old = "/api/v1/namespaces/default/events"
    event: dict[str, Any] = {
        "metadata": {"name": "e1"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested",
        "message": "it happened",
        "type": "Normal",
    }
    assert shared_server.request("POST", old, event).status == 201
    new = old.replace("/api/v1", "/apis/events.k8s.io/v1")
    seen = shared_server.request("GET", f"{new}/e1").json
    assert (seen["apiVersion"], seen["note"]) == ("events.k8s.io/v1", "it happened")
    assert seen["regarding"]["name"] == "p"
    found = shared_server.request("GET", f"{old}?fieldSelector=involvedObject.name%3Dp").json
    assert [item["metadata"]["name"] for item in found["items"]] == ["e1"]


def test_requests_that_are_no_http_end_the_connection(shared_server: ApiServer) -> None:
    import socket

    cases = [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, b"431"),
        (b"BR(W / HTTP/1.1\r\n\r\n", b"400"),
    ]
    for sent, code in cases:
        raw = socket.create_connection(("127.0.0.1", shared_server.port), timeout=10)
        with shared_server.context().wrap_socket(raw, server_hostname="localhost") as tls:
            tls.sendall(sent)
            answer = b""
            while chunk := tls.recv(4096):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 " + code), sent[:40]


def test_chunked_bodies_and_pipelined_requests_are_understood(shared_server: ApiServer) -> None:
    import socket

    body = b'{"metadata":{"name":"chunked"}}'
    head = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\n"
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    read = (
        b"GET /api/v1/namespaces/default/configmaps/chunked HTTP/1.1\r\n"
        b"Host: x\r\nConnection: close\r\n\r\n"
    )
    raw = socket.create_connection(("127.0.0.1", shared_server.port), timeout=10)
    with shared_server.context().wrap_socket(raw, server_hostname="localhost") as tls:
        tls.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + read)
        answer = b""
        while chunk := tls.recv(4096):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 201")
    assert b"HTTP/1.1 200" in answer
