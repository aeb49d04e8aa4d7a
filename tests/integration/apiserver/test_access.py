"""Who may ask what: certificates, tokens, roles, reviews."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.apiserver import ApiServer

MAPS = "/api/v1/namespaces/default/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authorization.k8s.io/v1"


def ask(api: ApiServer, method: str, path: str, body: Any = None, token: str = "") -> Any:
    """Ask without a certificate, with a token where one is given."""
    connection = api.connect(certificate=False)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return api.request(method, path, body, headers=headers, connection=connection)
    finally:
        connection.close()


def new_token(api: ApiServer, account: str = "default") -> str:
    answer = api.request("POST", f"{ACCOUNTS}/{account}/token", {"spec": {}})
    assert answer.status == 201, answer.body
    return str(answer.json["status"]["token"])


def allow(api: ApiServer, name: str, *verbs: str, resource: str = "configmaps") -> None:
    rule = {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}
    role = api.request("POST", f"{RBAC}/roles", {"metadata": {"name": name}, "rules": [rule]})
    assert role.status == 201, role.body
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    bound = api.request("POST", f"{RBAC}/rolebindings", binding)
    assert bound.status == 201, bound.body


@pytest.mark.parametrize(
    ("path", "token", "code"),
    [
        (MAPS, "", 401),
        (MAPS, "nonsense", 401),
        ("/version", "", 401),
        ("/livez", "", 200),
        ("/readyz", "", 200),
    ],
)
def test_nobody_is_answered_but_those_who_ask_for_health(
    shared_server: ApiServer, path: str, token: str, code: int
) -> None:
    answer = ask(shared_server, "GET", path, token=token)
    assert answer.status == code
    if code == 401:
        assert answer.json["reason"] == "Unauthorized"


def test_an_account_may_do_exactly_what_its_roles_allow(shared_server: ApiServer) -> None:
    shared_server.request("POST", ACCOUNTS, {"metadata": {"name": "reader"}})
    token = new_token(shared_server, "reader")
    refused = ask(shared_server, "GET", MAPS, token=token)
    assert refused.status == 403
    assert refused.json["message"] == (
        'configmaps is forbidden: User "system:serviceaccount:default:reader" cannot list '
        'resource "configmaps" in API group "" in the namespace "default"'
    )
    allow(shared_server, "reader", "get", "list")
    assert ask(shared_server, "GET", MAPS, token=token).status == 200
    assert ask(shared_server, "POST", MAPS, {"metadata": {"name": "x"}}, token).status == 403
    assert ask(shared_server, "GET", "/api/v1/configmaps", token=token).status == 403
    shared_server.request("DELETE", f"{RBAC}/rolebindings/reader")
    assert ask(shared_server, "GET", MAPS, token=token).status == 403


def test_a_token_ends_with_its_account(shared_server: ApiServer) -> None:
    shared_server.request("POST", ACCOUNTS, {"metadata": {"name": "leaver"}})
    token = new_token(shared_server, "leaver")
    assert ask(shared_server, "GET", "/version", token=token).status == 200
    shared_server.request("DELETE", f"{ACCOUNTS}/leaver")
    assert ask(shared_server, "GET", "/version", token=token).status == 401


def test_tokens_of_the_file_are_known(shared_server: ApiServer) -> None:
    path = shared_server.data / "tokens.csv"
    path.write_text('letmein,jane,1,"system:masters"\n')
    path.chmod(0o600)
    assert ask(shared_server, "GET", MAPS, token="letmein").status == 200
    path.unlink()
    assert ask(shared_server, "GET", MAPS, token="letmein").status == 401


def test_nobody_grants_what_they_do_not_have(shared_server: ApiServer) -> None:
    shared_server.request("POST", ACCOUNTS, {"metadata": {"name": "climber"}})
    rules = [
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]
    for body, plural in (
        ({"metadata": {"name": "climber"}, "rules": rules}, "roles"),
        (
            {
                "metadata": {"name": "climber"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": "climber",
                },
                "subjects": [{"kind": "ServiceAccount", "name": "climber", "namespace": "default"}],
            },
            "rolebindings",
        ),
    ):
        assert shared_server.request("POST", f"{RBAC}/{plural}", body).status == 201
    token = new_token(shared_server, "climber")

    def role(name: str, verb: str) -> dict[str, Any]:
        granted = {"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}
        # Rules with all verbs on roles hold escalate as well, so it is asked for by name.
        return {"metadata": {"name": name}, "rules": [granted]}

    own = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"],
           "verbs": ["create", "patch", "get"]}  # fmt: skip
    patch = {"rules": [own, rules[1]]}
    merge = "application/merge-patch+json"
    changed = shared_server.request("PATCH", f"{RBAC}/roles/climber", patch, content_type=merge)
    assert changed.status == 200
    assert ask(shared_server, "POST", f"{RBAC}/roles", role("fine", "get"), token).status == 201
    refused = ask(shared_server, "POST", f"{RBAC}/roles", role("much", "delete"), token)
    assert refused.status == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.json["message"]


def test_the_components_have_accounts_of_their_own(shared_server: ApiServer) -> None:
    for name, path, code in (
        ("scheduler", "/api/v1/pods", 200),
        ("scheduler", "/api/v1/secrets", 403),
        ("process-node", "/api/v1/nodes", 200),
    ):
        connection = shared_server.connect(user=name)
        assert shared_server.request("GET", path, connection=connection).status == code, name
        connection.close()


def review(api: ApiServer, plural: str, spec: dict[str, Any], token: str = "") -> Any:
    path = f"{REVIEWS}/{plural}"
    answer = ask(api, "POST", path, {"spec": spec}, token) if token else api.request(
        "POST", path, {"spec": spec}
    )  # fmt: skip
    assert answer.status == 201, answer.body
    return answer.json["status"]


def test_reviews_say_who_may_do_what(shared_server: ApiServer) -> None:
    wish = {"verb": "delete", "resource": "pods", "namespace": "default"}
    own = {"resourceAttributes": wish}
    token = new_token(shared_server)
    assert review(shared_server, "selfsubjectaccessreviews", own)["allowed"] is True
    assert review(shared_server, "selfsubjectaccessreviews", own, token)["allowed"] is False
    other = {**own, "user": "jane", "groups": ["system:masters"]}
    assert review(shared_server, "subjectaccessreviews", other)["allowed"] is True
    assert review(shared_server, "subjectaccessreviews", {**own, "user": "j"})["allowed"] is False
    rules = review(shared_server, "selfsubjectrulesreviews", {"namespace": "default"}, token)
    assert any("/version" in r["nonResourceURLs"] for r in rules["nonResourceRules"])


def test_reviews_say_who_somebody_is(shared_server: ApiServer) -> None:
    token = new_token(shared_server)
    path = "/apis/authentication.k8s.io/v1"
    mine = ask(shared_server, "POST", f"{path}/selfsubjectreviews", {}, token).json
    assert mine["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    for given, known in ((token, True), ("nonsense", False)):
        body = {"spec": {"token": given}}
        found = shared_server.request("POST", f"{path}/tokenreviews", body).json["status"]
        assert found.get("authenticated", False) is known


def test_those_who_may_act_as_others(shared_server: ApiServer) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "staff"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    connection = shared_server.connect()
    found = shared_server.request("POST", path, {}, headers=headers, connection=connection).json
    connection.close()
    assert found["status"]["userInfo"]["username"] == "jane"
    assert shared_server.request("GET", MAPS, headers=headers).status == 403
