"""Deletion: at once, in time, behind finalizers, with what belongs to it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync

MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SPEC = {"containers": [{"name": "main", "image": "none"}]}


def create(api: ApiServer, path: str, name: str, **meta: Any) -> dict[str, Any]:
    spec = {"spec": SPEC} if path == PODS else {}
    answer = api.request("POST", path, {"metadata": {"name": name, **meta}, **spec})
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.json
    return made


def owned_by(owner: dict[str, Any], blocks: bool = False) -> list[dict[str, Any]]:
    meta = owner["metadata"]
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
            "blockOwnerDeletion": blocks,
        }
    ]


def gone(api: ApiServer, path: str) -> None:
    eventually_sync(lambda: api.request("GET", path).status == 404, what=f"the end of {path}")


def test_the_answer_to_a_deletion_names_what_is_gone(shared_server: ApiServer) -> None:
    made = create(shared_server, MAPS, "simple")
    answer = shared_server.request("DELETE", f"{MAPS}/simple").json
    assert answer["status"] == "Success"
    assert answer["details"] == {
        "name": "simple",
        "kind": "configmaps",
        "uid": made["metadata"]["uid"],
    }


def test_a_finalizer_holds_an_object_until_it_is_removed(shared_server: ApiServer) -> None:
    create(shared_server, MAPS, "held", finalizers=["example.org/hold"])
    marked = shared_server.request("DELETE", f"{MAPS}/held").json
    assert marked["metadata"]["deletionTimestamp"]
    assert shared_server.request("GET", f"{MAPS}/held").status == 200
    free = {"metadata": {"finalizers": None}}
    assert shared_server.request("PATCH", f"{MAPS}/held", free, content_type=MERGE).status == 200
    assert shared_server.request("GET", f"{MAPS}/held").status == 404


GRACE = [
    ("unbound", False, {}, None),
    ("bound", True, {}, 30),
    ("bound and hurried", True, {"gracePeriodSeconds": 5}, 5),
    ("bound and forced", True, {"gracePeriodSeconds": 0}, None),
]


@pytest.mark.parametrize(("case", "bound", "options", "grace"), GRACE, ids=[g[0] for g in GRACE])
def test_pods_on_a_node_get_time_to_end(
    shared_server: ApiServer, case: str, bound: bool, options: Any, grace: int | None
) -> None:
    name = case.replace(" ", "-")
    create(shared_server, PODS, name)
    if bound:
        binding = {"target": {"kind": "Node", "name": "n1"}}
        assert shared_server.request("POST", f"{PODS}/{name}/binding", binding).status == 201
    shared_server.request("DELETE", f"{PODS}/{name}", options)
    left = shared_server.request("GET", f"{PODS}/{name}")
    if grace is None:
        assert left.status == 404
    else:
        assert left.json["metadata"]["deletionGracePeriodSeconds"] == grace
        shared_server.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        assert shared_server.request("GET", f"{PODS}/{name}").status == 404


def test_dependents_go_after_their_owner_in_the_background(shared_server: ApiServer) -> None:
    owner = create(shared_server, MAPS, "owner-b")
    create(shared_server, MAPS, "child-b", ownerReferences=owned_by(owner))
    shared_server.request("DELETE", f"{MAPS}/owner-b")
    gone(shared_server, f"{MAPS}/child-b")


def test_dependents_go_before_their_owner_in_the_foreground(shared_server: ApiServer) -> None:
    owner = create(shared_server, MAPS, "owner-f")
    create(shared_server, MAPS, "child-f", ownerReferences=owned_by(owner, blocks=True),
           finalizers=["example.org/hold"])  # fmt: skip
    options = {"propagationPolicy": "Foreground"}
    shared_server.request("DELETE", f"{MAPS}/owner-f", options)
    eventually_sync(
        lambda: (
            shared_server.request("GET", f"{MAPS}/child-f")
            .json["metadata"]
            .get("deletionTimestamp")
        ),
        what="the dependent's deletion",
    )
    owner_meta = shared_server.request("GET", f"{MAPS}/owner-f").json["metadata"]
    assert owner_meta["finalizers"] == ["foregroundDeletion"]
    free = {"metadata": {"finalizers": None}}
    shared_server.request("PATCH", f"{MAPS}/child-f", free, content_type=MERGE)
    gone(shared_server, f"{MAPS}/owner-f")


def test_orphans_stay(shared_server: ApiServer) -> None:
    owner = create(shared_server, MAPS, "owner-o")
    create(shared_server, MAPS, "child-o", ownerReferences=owned_by(owner))
    shared_server.request("DELETE", f"{MAPS}/owner-o?propagationPolicy=Orphan")
    gone(shared_server, f"{MAPS}/owner-o")
    child = shared_server.request("GET", f"{MAPS}/child-o").json
    assert "ownerReferences" not in child["metadata"]


def test_what_names_an_owner_that_never_was_is_collected(shared_server: ApiServer) -> None:
    owner = create(shared_server, MAPS, "short-lived")
    reference = owned_by(owner)
    shared_server.request("DELETE", f"{MAPS}/short-lived")
    create(shared_server, MAPS, "late", ownerReferences=reference)
    gone(shared_server, f"{MAPS}/late")


def test_a_namespace_goes_once_everything_in_it_is_gone(shared_server: ApiServer) -> None:
    spaces = "/api/v1/namespaces"
    shared_server.request("POST", spaces, {"metadata": {"name": "doomed"}})
    inside = f"{spaces}/doomed/configmaps"
    create(shared_server, inside, "held", finalizers=["example.org/hold"])
    create(shared_server, inside, "free")
    marked = shared_server.request("DELETE", f"{spaces}/doomed").json
    assert marked["status"]["phase"] == "Terminating"
    gone(shared_server, f"{inside}/free")
    refused = shared_server.request("POST", inside, {"metadata": {"name": "late"}})
    assert refused.status == 403
    assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    free = {"metadata": {"finalizers": None}}
    shared_server.request("PATCH", f"{inside}/held", free, content_type=MERGE)
    gone(shared_server, f"{spaces}/doomed")


def test_garbage_is_found_after_a_restart(server: ApiServer) -> None:
    owner = create(server, MAPS, "owner")
    create(server, MAPS, "child", ownerReferences=owned_by(owner))
    server.request("DELETE", f"{MAPS}/owner")
    server.kill()
    server.start()
    gone(server, f"{MAPS}/child")
