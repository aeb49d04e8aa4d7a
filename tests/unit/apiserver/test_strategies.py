"""What the server writes itself, what a write can reach, and what a deletion means."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.apiserver import metadata
from lockstep.apiserver.catalog import Catalog, Served
from lockstep.apiserver.crds import establish, served_versions
from lockstep.apiserver.deletion import Deletion, Outcome, plan_deletion
from lockstep.apiserver.disruption import needs_no_budget, verdict
from lockstep.apiserver.subresource_fields import isolate
from lockstep.apiserver.versions import convert

Json = dict[str, Any]
CATALOG = Catalog()


def served(plural: str, group: str = "") -> Served:
    found = CATALOG.find(group, "v1", plural)
    assert found is not None
    return found


def test_a_clients_claims_about_origin_are_overwritten_at_creation() -> None:
    obj: Json = {
        "metadata": {
            "name": "x",
            "uid": "mine",
            "creationTimestamp": "2000-01-01T00:00:00Z",
            "deletionTimestamp": "2000-01-01T00:00:00Z",
            "generation": 9,
            "namespace": "elsewhere",
            "labels": {"kept": "yes"},
        },
        "status": {"phase": "Running"},
    }
    metadata.begin(obj, served("pods").kind, "here", 1_000_000_000.5)
    uid = obj["metadata"].pop("uid")
    assert uid != "mine"
    assert obj == {
        "metadata": {
            "name": "x",
            "namespace": "here",
            "creationTimestamp": "2001-09-09T01:46:40Z",
            "generation": 1,
            "labels": {"kept": "yes"},
        }
    }


OLD: Json = {
    "metadata": {"name": "x", "uid": "u", "resourceVersion": "5", "labels": {"a": "1"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Running"},
}
NEW: Json = {
    "metadata": {"name": "x", "labels": {"a": "2"}},
    "spec": {
        "nodeName": "m",
        "containers": [{"name": "c", "image": "j", "resources": {"limits": {"cpu": "1"}}}],
        "ephemeralContainers": [{"name": "e"}],
    },
    "status": {"phase": "Failed"},
}
# Resource, subresource, and for each place whether the write reaches it.
REACH = [
    ("pods", "", {"labels": True, "nodeName": True, "phase": False, "image": True}),
    ("pods", "status", {"labels": True, "nodeName": False, "phase": True, "image": False}),
    ("services", "status", {"labels": True, "nodeName": False, "phase": True, "image": False}),
    (
        "deployments.apps",
        "status",
        {"labels": False, "nodeName": False, "phase": True, "image": False},
    ),
    ("pods", "resize", {"labels": False, "nodeName": False, "phase": False, "image": False}),
    (
        "pods",
        "ephemeralcontainers",
        {"labels": False, "nodeName": False, "phase": False, "image": False},
    ),
    ("configmaps", "", {"labels": True, "nodeName": True, "phase": True, "image": True}),
]


@pytest.mark.parametrize(("plural", "subresource", "reached"), REACH)
def test_what_a_write_reaches(plural: str, subresource: str, reached: dict[str, bool]) -> None:
    new = {**NEW, "metadata": dict(NEW["metadata"])}
    name, _, group = plural.partition(".")
    after = isolate(served(name, group), new, OLD, subresource)
    changed = {
        "labels": after["metadata"]["labels"] == {"a": "2"},
        "nodeName": after["spec"]["nodeName"] == "m",
        "phase": after["status"]["phase"] == "Failed",
        "image": after["spec"]["containers"][0]["image"] == "j",
    }
    assert changed == reached
    resources = after["spec"]["containers"][0].get("resources")
    assert (resources is not None) is (subresource in ("", "resize"))
    ephemeral = after["spec"].get("ephemeralContainers")
    assert (ephemeral is not None) is (subresource in ("", "ephemeralcontainers"))


UNCHANGED = [
    ({}, True),
    ({"data": {"a": "2"}}, False),
    ({"metadata": {"name": "x", "managedFields": [{"manager": "m", "time": "later"}]}}, True),
    ({"metadata": {"name": "x", "managedFields": [{"manager": "n", "time": "now"}]}}, False),
    ({"metadata": {"name": "x", "labels": {}, "managedFields": []}}, False),
]


@pytest.mark.parametrize(("change", "expected"), UNCHANGED)
def test_when_a_write_changes_nothing(change: Json, expected: bool) -> None:
    old: Json = {
        "metadata": {"name": "x", "managedFields": [{"manager": "m", "time": "now"}]},
        "data": {"a": "1"},
    }
    assert metadata.unchanged({**old, **change}, old) is expected


NOW = 1_000_000_000.0
BOUND = {"nodeName": "n", "terminationGracePeriodSeconds": 20}
DELETIONS = [
    ("a config map goes at once", "configmaps", {}, {}, Deletion(), Outcome.GONE, None),
    ("a finalizer holds", "configmaps", {}, {"finalizers": ["f"]}, Deletion(), Outcome.MARKED, 0),
    ("an unbound pod ends at once", "pods", {}, {}, Deletion(), Outcome.ENDED, 0),
    ("a bound pod gets its time", "pods", BOUND, {}, Deletion(), Outcome.MARKED, 20),
    ("unless it is hurried", "pods", BOUND, {}, Deletion(grace=3), Outcome.MARKED, 3),
    ("or forced", "pods", BOUND, {}, Deletion(grace=0), Outcome.ENDED, 0),
    ("less than no time is a second", "pods", BOUND, {}, Deletion(grace=-5), Outcome.MARKED, 1),
    ("what has ended goes at once", "pods", BOUND,
     {"deletionTimestamp": "2001-09-09T01:46:40Z", "deletionGracePeriodSeconds": 0},
     Deletion(), Outcome.ENDED, 0),
    ("a later one may shorten", "pods", BOUND,
     {"deletionTimestamp": "2001-09-09T01:47:00Z", "deletionGracePeriodSeconds": 20},
     Deletion(grace=5), Outcome.MARKED, 5),
    ("but not lengthen", "pods", BOUND,
     {"deletionTimestamp": "2001-09-09T01:46:45Z", "deletionGracePeriodSeconds": 5},
     Deletion(grace=60), Outcome.MARKED, 5),
    ("foreground waits", "configmaps", {}, {},
     Deletion(propagation="Foreground"), Outcome.MARKED, 0),
    ("orphaning waits", "configmaps", {}, {}, Deletion(propagation="Orphan"), Outcome.MARKED, 0),
    ("a namespace is emptied first", "namespaces", {"finalizers": ["kubernetes"]}, {},
     Deletion(), Outcome.MARKED, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plural", "spec", "meta", "deletion", "outcome", "grace"),
    [d[1:] for d in DELETIONS],
    ids=[d[0] for d in DELETIONS],
)
def test_deletions(
    *,
    plural: str,
    spec: Json,
    meta: Json,
    deletion: Deletion,
    outcome: Outcome,
    grace: int | None,
) -> None:
    kind = served(plural).kind
    identity = {"apiVersion": kind.api_version, "kind": kind.kind}
    obj: Json = {**identity, "metadata": {"name": "x", **meta}, "spec": dict(spec)}
    assert plan_deletion(kind, obj, deletion, NOW) is outcome
    assert obj["metadata"].get("deletionGracePeriodSeconds") == grace
    if outcome is not Outcome.GONE:
        assert obj["metadata"]["deletionTimestamp"].startswith("2001-09-09T01:4")
    if plural == "namespaces":
        assert obj["status"]["phase"] == "Terminating"


def test_propagation_replaces_what_an_earlier_deletion_asked_for() -> None:
    obj: Json = {"metadata": {"name": "x", "finalizers": ["mine", "orphan"]}}
    plan_deletion(served("configmaps").kind, obj, Deletion(propagation="Foreground"), NOW)
    assert obj["metadata"]["finalizers"] == ["mine", "foregroundDeletion"]
    plan_deletion(served("configmaps").kind, obj, Deletion(propagation="Background"), NOW)
    assert obj["metadata"]["finalizers"] == ["mine"]


def pod(phase: str = "Running", ready: bool = True, deleting: bool = False) -> Json:
    meta = {"name": "p", **({"deletionTimestamp": "now"} if deleting else {})}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": meta, "status": {"phase": phase, "conditions": conditions}}


BUDGETS = [
    ({"minAvailable": 1}, pod(), [pod(), pod()], True),
    ({"minAvailable": 2}, pod(), [pod(), pod()], False),
    ({"minAvailable": "50%"}, pod(), [pod(), pod(), pod()], True),
    ({"minAvailable": "51%"}, pod(), [pod(), pod(), pod()], True),
    ({"minAvailable": "67%"}, pod(), [pod(), pod(), pod()], False),
    ({"maxUnavailable": 1}, pod(), [pod(), pod(ready=False)], False),
    ({"maxUnavailable": 1}, pod(), [pod(), pod(deleting=True)], False),
    ({"maxUnavailable": 1}, pod(), [pod(), pod("Succeeded")], True),
    ({"minAvailable": 1}, pod(ready=False), [pod(ready=False), pod()], True),
    ({"minAvailable": 1}, pod(ready=False), [pod(ready=False)], False),
    (
        {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        pod(ready=False),
        [pod(ready=False)],
        True,
    ),
    ({}, pod(), [pod()], True),
]


@pytest.mark.parametrize(("spec", "evicted", "protected", "allowed"), BUDGETS)
def test_budgets(spec: Json, evicted: Json, protected: list[Json], allowed: bool) -> None:
    assert verdict({"spec": spec}, evicted, protected).allowed is allowed


@pytest.mark.parametrize(
    ("subject", "expected"),
    [(pod(), False), (pod("Pending"), True), (pod("Failed"), True), (pod(deleting=True), True)],
)
def test_evictions_that_disrupt_nothing(subject: Json, expected: bool) -> None:
    assert needs_no_budget(subject) is expected


def test_events_are_converted_there_and_back() -> None:
    old: Json = {"apiVersion": "v1", "involvedObject": {"name": "p"}, "message": "m", "count": 2}
    new = convert(old, "events.k8s.io/v1")
    assert new == {
        "apiVersion": "events.k8s.io/v1",
        "regarding": {"name": "p"},
        "note": "m",
        "deprecatedCount": 2,
    }
    assert convert(new, "v1") == old


def crd(**names: Any) -> Json:
    return {
        "metadata": {"name": "pods.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"plural": "pods", "kind": "Pod", **names},
            "versions": [
                {"name": "v1", "served": True, "storage": True},
                {"name": "v0", "served": False, "storage": False},
            ],
        },
    }


def test_a_definition_is_served_once_it_is_established() -> None:
    definition = crd()
    assert served_versions(definition) == []
    establish(definition, CATALOG, "now")
    (version,) = served_versions(definition)
    assert (version.storage, version.kind.namespaced) == ("pods.example.org", False)
    assert version.kind.api_version == "example.org/v1"


def test_a_definition_may_not_take_anothers_name_in_its_group() -> None:
    first = crd(shortNames=["pp"])
    establish(first, [], "now")
    taken = served_versions(first)
    again = crd(shortNames=["pp"])
    establish(again, taken, "later")
    assert served_versions(again)
    second = crd(plural="things", kind="Thing", shortNames=["pp"])
    second["metadata"]["name"] = "things.example.org"
    establish(second, taken, "later")
    assert served_versions(second) == []
    reasons = {c["type"]: c["reason"] for c in second["status"]["conditions"]}
    assert reasons == {"NamesAccepted": "NameConflict", "Established": "NotAccepted"}
