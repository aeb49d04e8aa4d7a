from __future__ import annotations

import json
import re
from typing import Any

import pytest

from lockstep.api.crd import schema
from lockstep.apiserver.builtin import BUILTINS, REVIEWS, Kind
from lockstep.apiserver.openapi import Definition, OpenApi

Json = dict[str, Any]

GANG = Definition(
    Kind(
        group="lockstep.dev",
        version="v1alpha1",
        plural="gangs",
        kind="Gang",
        namespaced=True,
        singular="gang",
        schema_name="",
        subresources=frozenset({"status"}),
    ),
    "GangList",
    schema("Gang"),
)
SERVED = [*(Definition(k) for k in (*BUILTINS, *REVIEWS)), GANG]
GROUPS = sorted(
    f"apis/{d.kind.group}/{d.kind.version}" if d.kind.group else "api/v1" for d in SERVED
)


def read(path: str) -> Json:
    answer = OpenApi(SERVED).document(path)
    assert answer is not None
    return json.loads(answer[0])  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", sorted(set(GROUPS)))
def test_every_reference_leads_somewhere(path: str) -> None:
    document = read(path)
    wanted = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert wanted <= document["components"]["schemas"].keys()


def test_the_index_names_every_document_with_its_hash() -> None:
    served = OpenApi(SERVED)
    paths = json.loads(served.index())["paths"]
    assert sorted(paths) == sorted(set(GROUPS))
    _, digest = served.document("apis/apps/v1") or (b"", "")
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={digest}"}
    assert served.document("apis/nope/v1") is None


def test_documents_are_the_same_every_time() -> None:
    assert OpenApi(SERVED).index() == OpenApi(SERVED).index()


def test_a_changed_crd_changes_its_hash_and_no_other() -> None:
    changed = Definition(GANG.kind, GANG.list_kind, {"type": "object"})
    before = json.loads(OpenApi(SERVED).index())["paths"]
    after = json.loads(OpenApi([*SERVED[:-1], changed]).index())["paths"]
    assert [p for p in before if before[p] != after[p]] == ["apis/lockstep.dev/v1alpha1"]


def test_patches_carry_the_fields_kubectl_checks_before_server_side_validation() -> None:
    item = read("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert item["patch"]["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "kind": "Deployment",
        "version": "v1",
    }
    assert {p["name"] for p in item["patch"]["parameters"]} == {
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
    }


@pytest.mark.parametrize(
    ("path", "method", "kind", "answer"),
    [
        ("/pods/{name}/binding", "post", "Binding", "io.k8s.api.core.v1.Binding"),
        ("/pods/{name}/eviction", "post", "Eviction", "io.k8s.api.policy.v1.Eviction"),
        ("/pods/{name}/log", "get", "Pod", "io.k8s.api.core.v1.Pod"),
        (
            "/serviceaccounts/{name}/token",
            "post",
            "TokenRequest",
            "io.k8s.api.authentication.v1.TokenRequest",
        ),
    ],
)
def test_subresources_speak_their_own_kinds(path: str, method: str, kind: str, answer: str) -> None:
    operation = read("api/v1")["paths"][f"/api/v1/namespaces/{{namespace}}{path}"][method]
    assert operation["x-kubernetes-group-version-kind"]["kind"] == kind
    content = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert content == {"$ref": f"#/components/schemas/{answer}"}


def test_built_in_schemas_come_with_their_descriptions() -> None:
    pod = read("api/v1")["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert pod["description"].startswith("Pod is a collection of containers")
    assert pod["properties"]["spec"]["description"].startswith("Specification of the desired")
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]


def test_custom_schemas_are_named_by_their_reversed_group() -> None:
    schemas = read("apis/lockstep.dev/v1alpha1")["components"]["schemas"]
    gang = schemas["dev.lockstep.v1alpha1.Gang"]
    assert gang["properties"]["metadata"]["allOf"]
    assert gang["properties"]["spec"]["properties"]["queue"]["description"]
    assert schemas["dev.lockstep.v1alpha1.GangList"]["x-kubernetes-group-version-kind"] == [
        {"group": "lockstep.dev", "kind": "GangList", "version": "v1alpha1"}
    ]


def test_embedded_resources_show_their_type_and_metadata() -> None:
    embedded = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {"spec": {"type": "object"}},
    }
    inside = {"type": "object", "properties": {"list": {"type": "array", "items": embedded}}}
    served = OpenApi([Definition(GANG.kind, "GangList", inside)])
    raw, _ = served.document("apis/lockstep.dev/v1alpha1") or (b"", "")
    gang = json.loads(raw)["components"]["schemas"]["dev.lockstep.v1alpha1.Gang"]
    shown = gang["properties"]["list"]["items"]
    assert set(shown["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert shown["required"] == ["apiVersion", "kind"]
