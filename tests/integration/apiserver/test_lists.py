"""Lists: selectors, pages pinned to a revision, versions asked for."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.support.apiserver import ApiServer

SPACE = "/api/v1/namespaces/lists"
PODS = f"{SPACE}/pods"
MAPS = f"{SPACE}/configmaps"


def pod(name: str, node: str = "", **labels: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "none"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def api(shared_server: ApiServer) -> ApiServer:
    shared_server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "lists"}})
    for body in (
        pod("a", app="web", tier="front"),
        pod("b", app="web", tier="back"),
        pod("c", "n1", app="db"),
        pod("d", "n2"),
    ):
        assert shared_server.request("POST", PODS, body).status == 201
    for number in range(7):
        shared_server.request("POST", MAPS, {"metadata": {"name": f"m{number}"}})
    return shared_server


SELECTED = [
    ("labelSelector=app=web", "ab"),
    ("labelSelector=app!=web", "cd"),
    ("labelSelector=app in (web,db),tier notin (back)", "ac"),
    ("labelSelector=!app", "d"),
    ("labelSelector=tier", "ab"),
    ("fieldSelector=spec.nodeName=n1", "c"),
    ("fieldSelector=spec.nodeName=", "ab"),
    ("fieldSelector=metadata.name=b", "b"),
    ("fieldSelector=metadata.name!=b,status.phase=Pending", "acd"),
    ("fieldSelector=spec.nodeName!=n1&labelSelector=app", "ab"),
    ("fieldSelector=metadata.namespace=elsewhere", ""),
]


@pytest.mark.parametrize(("query", "expected"), SELECTED)
def test_selectors(api: ApiServer, query: str, expected: str) -> None:
    items = api.request("GET", f"{PODS}?{quote(query, safe='&=')}").json["items"]
    assert "".join(item["metadata"]["name"] for item in items) == expected


WRONG = [
    ("labelSelector=a=b=c", 400, "BadRequest"),
    ("fieldSelector=spec.containers=x", 400, "BadRequest"),
    ("limit=many", 400, "BadRequest"),
    ("continue=nonsense", 400, "BadRequest"),
    ("resourceVersion=x", 400, "BadRequest"),
    ("resourceVersion=999999999", 504, "Timeout"),
    ("resourceVersionMatch=Exact", 422, "Invalid"),
]


@pytest.mark.parametrize(("query", "code", "reason"), WRONG)
def test_wrong_parameters(api: ApiServer, query: str, code: int, reason: str) -> None:
    answer = api.request("GET", f"{PODS}?{query}")
    assert (answer.status, answer.json["reason"]) == (code, reason), answer.json


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


def test_pages_show_the_state_of_the_first_page(api: ApiServer) -> None:
    first = api.request("GET", f"{MAPS}?limit=3").json
    assert names(first) == ["m0", "m1", "m2"]
    assert first["metadata"]["remainingItemCount"] == len(api_names(api)) - 3
    api.request("DELETE", f"{MAPS}/m4")
    api.request("POST", MAPS, {"metadata": {"name": "m45"}})
    seen, page = names(first), first
    while token := page["metadata"].get("continue"):
        page = api.request("GET", f"{MAPS}?limit=3&continue={token}").json
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        seen += names(page)
    assert [n for n in seen if n.startswith("m")] == [f"m{n}" for n in range(7)]
    assert "m45" in api_names(api)
    api.request("DELETE", f"{MAPS}/m45")
    api.request("POST", MAPS, {"metadata": {"name": "m4"}})


def api_names(api: ApiServer) -> list[str]:
    return names(api.request("GET", MAPS).json)


def test_a_list_at_an_exact_version_is_that_of_then(api: ApiServer) -> None:
    then = api.request("GET", MAPS).json
    version = then["metadata"]["resourceVersion"]
    api.request("POST", MAPS, {"metadata": {"name": "later"}})
    query = f"resourceVersion={version}&resourceVersionMatch="
    assert api.request("GET", f"{MAPS}?{query}Exact").json["items"] == then["items"]
    assert "later" in names(api.request("GET", f"{MAPS}?{query}NotOlderThan").json)
    assert "later" in names(api.request("GET", f"{MAPS}?resourceVersion=0").json)


def test_a_list_across_namespaces_is_in_order(api: ApiServer) -> None:
    items = api.request("GET", "/api/v1/configmaps").json["items"]
    places = [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in items]
    assert places == sorted(places)


def test_deletecollection_deletes_what_is_selected(api: ApiServer) -> None:
    for number in range(3):
        labels = {"doomed": "yes" if number else "no"}
        body = {"metadata": {"name": f"z{number}", "labels": labels}}
        api.request("POST", MAPS, body)
    answer = api.request("DELETE", f"{MAPS}?labelSelector=doomed%3Dyes")
    assert names(answer.json) == ["z1", "z2"]
    assert [n for n in api_names(api) if n.startswith("z")] == ["z0"]
