"""No way around what a user may do: by a body that lies, an apply that creates, another's token."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


def acting_as(api: ApiServer, user: str, method: str, path: str, body: Any, **headers: str) -> Any:
    return api.request(method, path, body, headers={"Impersonate-User": user, **headers})


def put_role(api: ApiServer, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
    scope = f"namespaces/{namespace}/roles" if namespace else "clusterroles"
    answer = api.request(
        "POST", f"{RBAC}/{scope}", {"metadata": {"name": name}, "rules": list(rules)}
    )
    assert answer.status == 201, answer.body


def bind(api: ApiServer, name: str, user: str) -> None:
    subject = {"apiGroup": GROUP, "kind": "User", "name": user}
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    answer = api.request("POST", f"{RBAC}/clusterrolebindings", body)
    assert answer.status == 201, answer.body


def rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


@pytest.mark.parametrize("namespace", [{}, {"namespace": ""}, {"namespace": "default"}])
def test_a_binding_grants_the_role_that_its_path_names(
    server: ApiServer, namespace: dict[str, str]
) -> None:
    """A harmless cluster role of the same name must not stand in for a powerful role."""
    put_role(server, "twin", rule("", "pods", "get"))
    put_role(server, "twin", rule("", "secrets", "*"), namespace="default")
    put_role(server, "binder", rule(GROUP, "rolebindings", "create", "update", "patch"))
    bind(server, "binder", "mallory")
    bind(server, "twin", "mallory")
    body = {
        "metadata": {"name": "b", **namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "twin"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "mallory"}],
    }
    path = f"{RBAC}/namespaces/default/rolebindings"
    answer = acting_as(server, "mallory", "POST", path, body)
    assert answer.status == 403
    assert "attempting to grant RBAC permissions not currently held" in answer.json["message"]
    assert server.request("POST", path, {**body, "subjects": []}).status == 201
    patch = {"metadata": {"namespace": None}, "subjects": body["subjects"]}
    patched = acting_as(
        server,
        "mallory",
        "PATCH",
        f"{path}/b",
        patch,
        **{"Content-Type": "application/merge-patch+json"},
    )
    assert patched.status == 403


def test_an_apply_that_creates_takes_the_right_to_create(server: ApiServer) -> None:
    put_role(server, "patcher", rule("", "configmaps", "patch"))
    bind(server, "patcher", "pat")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    path = f"{MAPS}/c?fieldManager=pat"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    refused = acting_as(server, "pat", "PATCH", path, body, **headers)
    assert refused.status == 403
    assert 'cannot create resource "configmaps"' in refused.json["message"]
    created = server.request("PATCH", f"{MAPS}/c?fieldManager=admin", body, headers=headers)
    assert created.status == 201
    changed = acting_as(server, "pat", "PATCH", path, body, **headers)
    assert changed.status == 200


def pod(account: str) -> dict[str, Any]:
    spec = {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": f"p-{account}"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({}, 201, ""),
        ({"boundObjectRef": {"kind": "Pod", "name": "p-default"}}, 201, ""),
        ({"boundObjectRef": {"kind": "Pod", "name": "absent"}}, 404, "not found"),
        (
            {"boundObjectRef": {"kind": "Pod", "name": "p-other"}},
            400,
            "running with different serviceaccount name",
        ),
        (
            {"boundObjectRef": {"kind": "Pod", "name": "p-default", "uid": "x"}},
            409,
            "does not match the UID in record",
        ),
        ({"boundObjectRef": {"kind": "ConfigMap", "name": "c"}}, 400, "of type /, Kind=ConfigMap"),
        ({"expirationSeconds": 599}, 422, "less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, 422, "larger than 2^32 seconds"),
    ],
)
def test_what_a_token_can_be_bound_to(
    shared_server: ApiServer, spec: dict[str, Any], code: int, message: str
) -> None:
    account = {"metadata": {"name": "other"}}
    shared_server.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    for name in ("default", "other"):
        made = shared_server.request("POST", "/api/v1/namespaces/default/pods", pod(name))
        assert made.status in (201, 409), made.body
    answer = shared_server.request("POST", TOKEN, {"spec": spec})
    assert answer.status == code, answer.body
    if code != 201:
        assert message in answer.json["message"]
    else:
        assert answer.json["status"]["token"].count(".") == 2
