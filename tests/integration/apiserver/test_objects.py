"""Creating, reading, changing and deleting: requests and what they are answered."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer

from lockstep.apiserver.protobuf import decode

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


REFUSED = [
    ("a name that is taken", "POST", MAPS, config_map("taken"), 409, "AlreadyExists"),
    ("no name at all", "POST", MAPS, config_map(""), 422, "Invalid"),
    ("a name that is none", "POST", MAPS, config_map("No_Name"), 422, "Invalid"),
    ("another kind", "POST", MAPS, {**config_map("x"), "kind": "Secret"}, 400, "BadRequest"),
    (
        "another namespace",
        "POST",
        MAPS,
        {**config_map("x"), "metadata": {"name": "x", "namespace": "kube-system"}},
        400,
        "BadRequest",
    ),
    (
        "a version at creation",
        "POST",
        MAPS,
        {**config_map("x"), "metadata": {"name": "x", "resourceVersion": "1"}},
        500,
        None,
    ),
    (
        "a missing namespace",
        "POST",
        "/api/v1/namespaces/nowhere/configmaps",
        config_map("x"),
        404,
        "NotFound",
    ),
    ("no JSON", "POST", MAPS, b"{", 400, "BadRequest"),
    ("a list", "POST", MAPS, b"[]", 400, "BadRequest"),
    ("the wrong type", "POST", PODS, pod("x", hostNetwork="yes"), 400, "BadRequest"),
    ("a pod without containers", "POST", PODS, pod("x", containers=[]), 422, "Invalid"),
    ("no such priority", "POST", PODS, pod("x", priorityClassName="no"), 403, "Forbidden"),
    ("an absent object", "GET", f"{MAPS}/absent", None, 404, "NotFound"),
    ("an absent resource", "GET", "/api/v1/namespaces/default/nothings", None, 404, "NotFound"),
    ("an absent subresource", "GET", f"{MAPS}/taken/status", None, 404, "NotFound"),
    ("an absent version", "GET", "/apis/apps/v9/namespaces/default/deployments", None,
     404, "NotFound"),
    ("an old version", "PUT", f"{MAPS}/taken",
     {**config_map("taken"), "metadata": {"name": "taken", "resourceVersion": "1"}},
     409, "Conflict"),
    ("another name", "PUT", f"{MAPS}/taken", config_map("other"), 400, "BadRequest"),
    ("another uid", "PUT", f"{MAPS}/taken",
     {**config_map("taken"), "metadata": {"name": "taken", "uid": "no"}}, 409, "Conflict"),
    ("a replacement of nothing", "PUT", f"{MAPS}/absent", config_map("absent"), 404, "NotFound"),
    ("a deletion of nothing", "DELETE", f"{MAPS}/absent", None, 404, "NotFound"),
    ("a wrong precondition", "DELETE", f"{MAPS}/taken", {"preconditions": {"uid": "no"}},
     409, "Conflict"),
    ("an unknown dry run", "POST", f"{MAPS}?dryRun=Some", config_map("x"), 422, "Invalid"),
    ("a strict unknown field", "POST", f"{PODS}?fieldValidation=Strict", pod("x", nonsense=1),
     400, "BadRequest"),
]  # fmt: skip


@pytest.fixture(scope="module")
def api(shared_server: ApiServer) -> ApiServer:
    assert shared_server.request("POST", MAPS, config_map("taken", a="1")).status == 201
    return shared_server


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "reason"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_refusals(
    api: ApiServer, *, method: str, path: str, body: Any, code: int, reason: str | None
) -> None:
    answer = api.request(method, path, body)
    status = answer.json
    assert (answer.status, status["code"], status.get("reason")) == (code, code, reason), status
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")


def test_an_invalid_object_is_answered_with_field_value_and_range(
    api: ApiServer,
) -> None:
    status = api.request("POST", PODS, pod("x", restartPolicy="Sometimes")).json
    assert status["message"] == (
        'Pod "x" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": '
        'supported values: "Always", "OnFailure", "Never"'
    )
    (cause,) = status["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("spec.restartPolicy", "FieldValueNotSupported")


def test_what_creation_writes_into_an_object(api: ApiServer) -> None:
    sent = config_map("created", key="value")
    sent["metadata"] |= {"uid": "mine", "generation": 7, "creationTimestamp": None}
    made = api.request("POST", f"{MAPS}?fieldManager=me", sent).json
    meta = made["metadata"]
    assert len(meta["uid"]) == 36
    assert meta["namespace"] == "default"
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["generation"] == 7  # nobody counts the generations of this kind
    assert [entry["manager"] for entry in meta["managedFields"]] == ["me"]
    assert api.request("GET", f"{MAPS}/created").json == made


def test_generated_names_differ_and_keep_their_prefix(api: ApiServer) -> None:
    body = {"metadata": {"generateName": "gen-"}}
    names = {api.request("POST", MAPS, body).json["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


def test_the_version_rises_with_every_write_of_any_object(api: ApiServer) -> None:
    versions = [
        int(api.request("POST", MAPS, config_map(f"rise-{n}")).json["metadata"]["resourceVersion"])
        for n in range(5)
    ]
    assert versions == sorted(set(versions))


def test_a_write_that_changes_nothing_writes_nothing(api: ApiServer) -> None:
    before = api.request("POST", MAPS, config_map("same", a="1")).json
    after = api.request("PATCH", f"{MAPS}/same", {"data": {"a": "1"}}, content_type=MERGE).json
    assert after == before


def test_dry_run_answers_as_if_and_stores_nothing(api: ApiServer) -> None:
    answer = api.request("POST", f"{MAPS}?dryRun=All", config_map("dry"))
    assert answer.status == 201
    assert answer.json["metadata"]["uid"]
    assert api.request("GET", f"{MAPS}/dry").status == 404


def test_unknown_fields_are_dropped_with_a_warning(api: ApiServer) -> None:
    answer = api.request("POST", PODS, pod("warned", nonsense=1))
    assert answer.status == 201
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.nonsense\\""'
    assert "nonsense" not in answer.json["spec"]
    ignored = api.request("POST", f"{PODS}?fieldValidation=Ignore", pod("ignored", nonsense=1))
    assert "Warning" not in ignored.headers


def test_yaml_bodies_are_read(api: ApiServer) -> None:
    text = b"metadata: {name: from-yaml}\ndata: {when: '2026-01-01', on: '1'}\n"
    answer = api.request("POST", MAPS, text, content_type="application/yaml")
    assert answer.json["data"] == {"when": "2026-01-01", "true": "1"}


def test_strict_requests_name_all_fields_that_are_unknown_or_doubled(api: ApiServer) -> None:
    said = b'{"metadata":{"name":"odd"},"spec":{"odd":1,"containers":[],"containers":[]}}'
    answer = api.request("POST", f"{PODS}?fieldValidation=Strict", said)
    assert 'unknown field "spec.odd", duplicate field "spec.containers"' in answer.json["message"]
    text = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n  a: c\n"
    where = f"{MAPS}/doubled?fieldManager=me&fieldValidation="
    answer = api.request("PATCH", f"{where}Strict", text, content_type=APPLY)
    assert answer.status == 400
    assert 'line 5: key "a" already set in map' in answer.json["message"]
    assert api.request("PATCH", f"{where}Ignore", text, content_type=APPLY).status == 201


@pytest.mark.parametrize(
    ("timeout", "status"),
    [("3m", 200), ("1h2m0.5s", 200), ("0s", 200), ("invalid", 400), ("5", 400)],
)
def test_a_time_to_answer_in_is_one(api: ApiServer, timeout: str, status: int) -> None:
    for path in (MAPS, "/version"):
        assert api.request("GET", f"{path}?timeout={timeout}").status == status


PATCHES = [
    (MERGE, {"data": {"a": None, "c": "3"}}, {"b": "2", "c": "3"}),
    (JSON_PATCH, [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9", "b": "2"}),
    (JSON_PATCH, [{"op": "remove", "path": "/data/b"}], {"a": "1"}),
    (STRATEGIC, {"data": {"a": None}}, {"b": "2"}),
]


@pytest.mark.parametrize(("kind", "patch", "expected"), PATCHES)
def test_patches(api: ApiServer, kind: str, patch: Any, expected: dict[str, str]) -> None:
    made = api.request("POST", MAPS, {**config_map("", a="1", b="2"),
                                      "metadata": {"generateName": "patched-"}}).json  # fmt: skip
    path = f"{MAPS}/{made['metadata']['name']}"
    assert api.request("PATCH", path, patch, content_type=kind).json["data"] == expected


def test_what_no_group_serves_is_answered_in_plain_text(api: ApiServer) -> None:
    answer = api.request("GET", "/apis/absent.example/v1/things")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


def test_a_patch_of_an_unknown_type_is_refused(api: ApiServer) -> None:
    answer = api.request("PATCH", f"{MAPS}/taken", {}, content_type="text/patch")
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")


def test_apply_creates_then_owns_and_conflicts_until_forced(api: ApiServer) -> None:
    path = f"{MAPS}/applied"

    def apply(manager: str, value: str, force: bool = False) -> Any:
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return api.request("PATCH", path + query, config_map("applied", k=value),
                           content_type=APPLY)  # fmt: skip

    assert apply("one", "1").status == 201
    assert apply("one", "2").status == 200
    refused = apply("two", "3")
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")
    (cause,) = refused.json["details"]["causes"]
    assert cause["reason"] == "FieldManagerConflict"
    assert cause["field"] == ".data.k"
    assert apply("two", "3", force=True).json["data"] == {"k": "3"}
    without = api.request("PATCH", path, config_map("applied"), content_type=APPLY)
    assert without.status == 422


def test_status_and_the_rest_are_written_apart(api: ApiServer) -> None:
    api.request("POST", PODS, pod("apart"))
    path = f"{PODS}/apart"
    changed = {"status": {"phase": "Running"}, "metadata": {"labels": {"new": "1"}}}
    past = api.request("PATCH", path, changed, content_type=MERGE).json
    assert (past["status"]["phase"], past["metadata"]["labels"]["new"]) == ("Pending", "1")
    through = {"status": {"phase": "Running"}, "spec": {"priority": 5}}
    after = api.request("PATCH", f"{path}/status", through, content_type=MERGE).json
    assert (after["status"]["phase"], after["spec"]["priority"]) == ("Running", 0)


def test_generation_counts_changes_of_the_spec_alone(api: ApiServer) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = api.request("POST", deployments, {"metadata": {"name": "gen"}, "spec": spec}).json
    path = f"{deployments}/gen"
    steps = [
        ({"metadata": {"labels": {"x": "y"}}}, path, 1),
        ({"spec": {"replicas": 2}}, path, 2),
        ({"status": {"replicas": 2}}, f"{path}/status", 2),
    ]
    assert made["metadata"]["generation"] == 1
    for patch, where, expected in steps:
        after = api.request("PATCH", where, patch, content_type=MERGE).json
        assert after["metadata"]["generation"] == expected, patch


def test_partial_metadata_and_tables_are_made_on_request(api: ApiServer) -> None:
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    found = api.request("GET", f"{MAPS}/taken", headers={"Accept": partial}).json
    assert (found["kind"], found["metadata"]["name"]) == ("PartialObjectMetadata", "taken")
    assert "data" not in found
    table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    found = api.request("GET", f"{MAPS}/taken", headers={"Accept": table}).json
    assert found["kind"] == "Table"
    assert [c["name"] for c in found["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert found["rows"][0]["cells"][:2] == ["taken", 1]
    assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_protobuf_is_answered_where_it_comes_first(api: ApiServer) -> None:
    accept = "application/vnd.kubernetes.protobuf,application/json"
    answer = api.request("GET", f"{MAPS}/taken", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == "application/vnd.kubernetes.protobuf"
    assert decode(answer.body)["data"] == {"a": "1"}


def test_a_write_is_answered_in_the_form_that_is_wanted(api: ApiServer) -> None:
    partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    patch = {"metadata": {"labels": {"form": "partial"}}}
    answer = api.request(
        "PATCH",
        f"{MAPS}/taken",
        patch,
        content_type="application/merge-patch+json",
        headers={"Accept": partial},
    )
    assert answer.json["kind"] == "PartialObjectMetadata"
    assert answer.json["metadata"]["labels"]["form"] == "partial"
    assert "data" not in answer.json


def test_an_autoscaler_is_served_in_both_versions(api: ApiServer) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "web"}
    spec = {"maxReplicas": 5, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 40}
    made = api.request("POST", path.format("v1"), {"metadata": {"name": "web"}, "spec": spec})
    assert made.status == 201
    newer = api.request("GET", f"{path.format('v2')}/web").json
    assert newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 40
    change = {"spec": {"maxReplicas": 6, "minReplicas": 7}}
    refused = api.request(
        "PATCH",
        f"{path.format('v1')}/web",
        change,
        content_type="application/merge-patch+json",
    )
    assert refused.status == 422
    assert "must be greater than or equal to `minReplicas`" in refused.json["message"]
