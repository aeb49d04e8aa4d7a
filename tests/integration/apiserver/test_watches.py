"""Watches: what they carry, where they start, how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.apiserver import ApiServer

MERGE = "application/merge-patch+json"


@pytest.fixture
def maps(shared_server: ApiServer, request: pytest.FixtureRequest) -> str:
    """The config maps of a namespace that is the test's own."""
    name = request.node.originalname.replace("_", "-")[:50].strip("-")
    shared_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}/configmaps"


def shown(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in events]


def version(server: ApiServer, path: str) -> str:
    return str(server.request("GET", path).json["metadata"]["resourceVersion"])


def create(server: ApiServer, maps: str, name: str, **labels: str) -> dict[str, Any]:
    made = server.request("POST", maps, {"metadata": {"name": name, "labels": labels}})
    assert made.status == 201, made.body
    found: dict[str, Any] = made.json
    return found


def test_it_resumes_after_the_version_it_is_given(shared_server: ApiServer, maps: str) -> None:
    create(shared_server, maps, "before")
    since = version(shared_server, maps)
    create(shared_server, maps, "one")
    shared_server.request("PATCH", f"{maps}/one", {"data": {"a": "1"}}, content_type=MERGE)
    shared_server.request("DELETE", f"{maps}/one")
    events = shared_server.watch(f"{maps}?watch=1&resourceVersion={since}&timeoutSeconds=1")
    assert shown(events) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))
    assert events[-1]["object"]["data"] == {"a": "1"}


@pytest.mark.parametrize("start", ["", "&resourceVersion=0"])
def test_without_a_version_it_begins_with_what_is_there(
    shared_server: ApiServer, maps: str, start: str
) -> None:
    name = f"there-{len(start)}"
    create(shared_server, maps, name)
    events = shared_server.watch(f"{maps}?watch=true&timeoutSeconds=1{start}")
    assert ("ADDED", name) in shown(events)


def test_a_streaming_list_ends_its_first_part_with_a_bookmark(
    shared_server: ApiServer, maps: str
) -> None:
    create(shared_server, maps, "x")
    create(shared_server, maps, "y")
    now = version(shared_server, maps)
    events = shared_server.watch(
        f"{maps}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true&timeoutSeconds=1"
    )
    assert shown(events)[:2] == [("ADDED", "x"), ("ADDED", "y")]
    bookmark = events[2]
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(now)
    # The last thing before the end of the time says how far the client has come.
    assert events[-1]["type"] == "BOOKMARK"


def test_objects_come_into_view_and_leave_it_by_their_labels(
    shared_server: ApiServer, maps: str
) -> None:
    since = version(shared_server, maps)
    create(shared_server, maps, "moving", on="no")
    for value in ("yes", "yes-too", "no"):
        patch = {"metadata": {"labels": {"on": value}}}
        shared_server.request("PATCH", f"{maps}/moving", patch, content_type=MERGE)
    create(shared_server, maps, "never", on="no")
    events = shared_server.watch(
        f"{maps}?watch=1&resourceVersion={since}&timeoutSeconds=1"
        "&labelSelector=on%20in%20(yes,yes-too)"
    )
    assert shown(events) == [("ADDED", "moving"), ("MODIFIED", "moving"), ("DELETED", "moving")]
    left = events[-1]["object"]["metadata"]
    assert left["labels"] == {"on": "yes-too"}
    assert int(left["resourceVersion"]) > int(events[1]["object"]["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("resourceVersion=x", 500),
        ("timeoutSeconds=soon", 400),
    ],
)
def test_wrong_parameters(shared_server: ApiServer, maps: str, query: str, code: int) -> None:
    assert shared_server.request("GET", f"{maps}?watch=1&{query}").status == code


def test_a_version_from_another_life_is_gone(shared_server: ApiServer, maps: str) -> None:
    (event,) = shared_server.watch(f"{maps}?watch=1&resourceVersion=99999999&timeoutSeconds=1")
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_events_are_sent_while_they_happen(shared_server: ApiServer, maps: str) -> None:
    connection = shared_server.connect()
    try:
        connection.request("GET", f"{maps}?watch=1&resourceVersion={version(shared_server, maps)}")
        response = connection.getresponse()
        for number in range(3):
            create(shared_server, maps, f"live-{number}")
            event = json.loads(response.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == (
                "ADDED",
                f"live-{number}",
            )
    finally:
        connection.close()


def test_tables_and_metadata_are_watched_in_their_own_form(
    shared_server: ApiServer, maps: str
) -> None:
    create(shared_server, maps, "shown")
    for form, kind in (("Table", "Table"), ("PartialObjectMetadata", "PartialObjectMetadata")):
        accept = f"application/json;as={form};v=v1;g=meta.k8s.io"
        answer = shared_server.request(
            "GET", f"{maps}?watch=1&timeoutSeconds=1", headers={"Accept": accept}
        )
        kinds = {json.loads(line)["object"]["kind"] for line in answer.body.splitlines()}
        assert kinds == {kind}


def test_history_survives_a_restart(server: ApiServer) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    since = version(server, maps)
    create(server, maps, "old")
    server.request("DELETE", f"{maps}/old")
    create(server, maps, "new")
    server.kill()
    server.start()
    events = server.watch(f"{maps}?watch=1&resourceVersion={since}&timeoutSeconds=1")
    assert shown(events) == [("ADDED", "old"), ("DELETED", "old"), ("ADDED", "new")]
