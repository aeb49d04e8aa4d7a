"""Custom resources: served as soon as their CRD is there, checked, pruned, defaulted, gone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually_sync

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def crd(plural: str = "widgets", kind: str = "Widget", **names: Any) -> dict[str, Any]:
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "replicas": {"type": "integer"},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        ],
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    older = {**version, "name": "v1beta1", "storage": False}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [version, older],
        },
    }


WIDGETS = "/apis/example.org/v1/namespaces/default/widgets"


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture(scope="module")
def api(shared_server: ApiServer) -> ApiServer:
    made = shared_server.request("POST", CRDS, crd())
    assert made.status == 201, made.body
    return shared_server


def test_it_is_established_by_the_answer_to_its_creation(api: ApiServer) -> None:
    status = api.request("GET", f"{CRDS}/widgets.example.org").json["status"]
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"]["listKind"] == "WidgetList"


def test_names_that_another_resource_has_are_not_accepted(api: ApiServer) -> None:
    made = api.request("POST", CRDS, crd("gadgets", "Widget")).json
    conditions = {c["type"]: c["status"] for c in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "False", "Established": "False"}
    assert api.request("GET", "/apis/example.org/v1/gadgets").status == 404


WRONG = [
    ("too small", widget("w", size=0), "spec.size", "FieldValueInvalid"),
    ("missing", widget("w"), "spec.size", "FieldValueRequired"),
    ("unknown value", widget("w", size=1, color="green"), "spec.color", "FieldValueNotSupported"),
    ("wrong type", widget("w", size="one"), "spec.size", "FieldValueTypeInvalid"),
]


@pytest.mark.parametrize(
    ("body", "field", "reason"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_objects_are_held_to_the_schema(
    api: ApiServer, body: dict[str, Any], field: str, reason: str
) -> None:
    answer = api.request("POST", WIDGETS, body)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    causes = {(c["field"], c["reason"]) for c in answer.json["details"]["causes"]}
    assert (field, reason) in causes


def test_objects_are_pruned_and_defaulted(api: ApiServer) -> None:
    answer = api.request("POST", WIDGETS, widget("made", size=3, extra=True))
    assert answer.status == 201
    assert answer.json["spec"] == {"size": 3, "color": "red"}
    assert 'unknown field \\"spec.extra\\"' in answer.headers["Warning"]
    assert answer.json["metadata"]["generation"] == 1


def test_each_version_is_served(api: ApiServer) -> None:
    api.request("POST", WIDGETS, widget("both", size=1))
    older = api.request("GET", WIDGETS.replace("/v1/", "/v1beta1/")).json
    assert (older["apiVersion"], older["kind"]) == ("example.org/v1beta1", "WidgetList")
    assert {item["apiVersion"] for item in older["items"]} == {"example.org/v1beta1"}


def test_status_and_scale_are_subresources(api: ApiServer) -> None:
    api.request("POST", WIDGETS, widget("scaled", size=1))
    path = f"{WIDGETS}/scaled"
    status = {"status": {"replicas": 2}, "spec": {"size": 9}}
    after = api.request("PATCH", f"{path}/status", status, content_type=MERGE).json
    assert (after["status"], after["spec"]["size"]) == ({"replicas": 2}, 1)
    scale = api.request(
        "PATCH", f"{path}/scale", {"spec": {"replicas": 4}}, content_type=MERGE
    ).json
    assert (scale["kind"], scale["spec"], scale["status"]["replicas"]) == (
        "Scale",
        {"replicas": 4},
        2,
    )
    assert api.request("GET", path).json["spec"]["replicas"] == 4


def test_a_replacement_names_the_version_it_replaces(api: ApiServer) -> None:
    api.request("POST", WIDGETS, widget("replaced", size=1))
    answer = api.request("PUT", f"{WIDGETS}/replaced", widget("replaced", size=2))
    assert answer.status == 422
    assert "metadata.resourceVersion" in answer.json["message"]


def test_declared_fields_can_be_selected_by(api: ApiServer) -> None:
    api.request("POST", WIDGETS, widget("blue", size=1, color="blue"))
    found = api.request("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dblue").json["items"]
    assert [item["metadata"]["name"] for item in found] == ["blue"]


def test_discovery_and_openapi_know_it(api: ApiServer) -> None:
    resources = api.request("GET", "/apis/example.org/v1").json["resources"]
    assert {r["name"] for r in resources} == {"widgets", "widgets/status", "widgets/scale"}
    paths = api.request("GET", "/openapi/v3/apis/example.org/v1").json["paths"]
    assert "/apis/example.org/v1/namespaces/{namespace}/widgets/{name}" in paths


def test_it_ends_with_its_objects(server: ApiServer) -> None:
    server.request("POST", CRDS, crd())
    server.request("POST", WIDGETS, widget("last", size=1))
    server.request("DELETE", f"{CRDS}/widgets.example.org")
    eventually_sync(
        lambda: server.request("GET", f"{CRDS}/widgets.example.org").status == 404,
        what="the end of the CRD",
    )
    assert server.request("GET", WIDGETS).status == 404
    server.request("POST", CRDS, crd())
    assert server.request("GET", WIDGETS).json["items"] == []


def test_it_is_served_after_a_restart(server: ApiServer) -> None:
    server.request("POST", CRDS, crd())
    server.request("POST", WIDGETS, widget("kept", size=1))
    server.kill()
    server.start()
    assert server.request("GET", f"{WIDGETS}/kept").json["spec"]["size"] == 1
