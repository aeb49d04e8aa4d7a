"""Who may do what: RBAC, impersonation, service accounts, reviews."""

from __future__ import annotations

from typing import Any, Final

from tests.support.conformance.script.ask import (
    APPLY,
    Ask,
    config_map,
    core,
    delete,
    get,
    merge,
    namespace,
    of,
    post,
    put,
    status,
)

NS: Final = "access"
RBAC: Final = "rbac.authorization.k8s.io"
MAPS: Final = core(NS, "configmaps")
ROLES: Final = of(RBAC, NS, "roles")
BINDINGS: Final = of(RBAC, NS, "rolebindings")
CLUSTER_ROLES: Final = f"/apis/{RBAC}/v1/clusterroles"
CLUSTER_BINDINGS: Final = f"/apis/{RBAC}/v1/clusterrolebindings"
REVIEWS: Final = "/apis/authorization.k8s.io/v1"
JANE: Final = {"Impersonate-User": "jane"}
BY_TOKEN: Final = {"Authorization": "Bearer ${token:status.token}"}


def _as(name: str, ask: Ask, headers: dict[str, str] = JANE, **more: Any) -> Ask:
    return Ask(
        f"{name}: {ask.name}", ask.method, ask.path, ask.body, ask.content_type, headers, **more
    )


def _role(name: str, *rules: Any) -> Any:
    return {"metadata": {"name": name}, "rules": list(rules)}


def _rule(verbs: str, resources: str, group: str = "", **more: Any) -> Any:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def _binding(name: str, role: str, *subjects: Any, kind: str = "Role") -> Any:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": list(subjects),
    }


def _may(what: str, verb: str, resource: str, headers: dict[str, str] = JANE, **more: Any) -> Ask:
    attributes = {"verb": verb, "resource": resource, "namespace": NS, **more}
    return post(
        f"may {what}",
        f"{REVIEWS}/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": attributes}},
        headers=headers,
    )


USER: Final = {"kind": "User", "apiGroup": RBAC, "name": "jane"}
SCRIPT: Final[tuple[Ask, ...]] = (
    *namespace(NS),
    post("a map to read", MAPS, config_map("m")),
    post("a map of another name", MAPS, config_map("n")),
    *(
        _as("jane, without rights", ask)
        for ask in (
            get("get", f"{MAPS}/m"),
            get("list", MAPS),
            get("list everywhere", "/api/v1/configmaps"),
            get("watch", f"{MAPS}?watch=true"),
            post("create", MAPS, config_map("x")),
            put("put", f"{MAPS}/m", config_map("m")),
            merge("patch", f"{MAPS}/m", {}),
            Ask("apply", "PATCH", f"{MAPS}/x?fieldManager=j", config_map("x"), APPLY),
            delete("delete", f"{MAPS}/m"),
            delete("delete all", MAPS),
            get("nodes", "/api/v1/nodes"),
            get("a namespace", f"/api/v1/namespaces/{NS}"),
            get("a status", of("apps", NS, "deployments/d/status")),
            get("a scale", of("apps", NS, "deployments/d/scale")),
            get("an unknown kind", core(NS, "nonsense")),
            get("metrics", "/metrics"),
            get("version", "/version"),
            get("health", "/healthz"),
            get("discovery", "/api"),
        )
    ),
    post("role", ROLES, _role("reader", _rule("get list", "configmaps"))),
    post(
        "role for one name",
        ROLES,
        _role("one", _rule("update delete", "configmaps", resourceNames=["m"])),
    ),
    post("role without verbs", ROLES, _role("bad", {"apiGroups": [""], "resources": ["pods"]})),
    post("role of paths", ROLES, _role("bad", {"nonResourceURLs": ["/x"], "verbs": ["get"]})),
    post("role without groups", ROLES, _role("bad", {"resources": ["pods"], "verbs": ["get"]})),
    post("binding", BINDINGS, _binding("jane", "reader", USER)),
    post("binding without a role", BINDINGS, {"metadata": {"name": "x"}, "subjects": [USER]}),
    post("binding of an odd kind", BINDINGS, _binding("x", "reader", USER, kind="Rule")),
    post(
        "binding of an odd subject",
        BINDINGS,
        _binding("x", "reader", {"kind": "Ghost", "name": "x"}),
    ),
    merge("binding to another role", f"{BINDINGS}/jane", {"roleRef": {"name": "one"}}),
    get(
        "bindings as a table",
        BINDINGS,
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    ),
    _as("jane, reading", get("get", f"{MAPS}/m"), until=status(200)),
    _as("jane, reading", get("list", MAPS)),
    _as("jane, reading", get("list of another namespace", core("default", "configmaps"))),
    _as("jane, reading", post("create", MAPS, config_map("x"))),
    _as("jane, reading", get("watch", f"{MAPS}?watch=true")),
    post("binding to one name", BINDINGS, _binding("jane2", "one", USER)),
    _as("jane, one name", put("put", f"{MAPS}/m", config_map("m", {"j": "1"})), until=status(200)),
    _as("jane, one name", put("put of the other", f"{MAPS}/n", config_map("n", {"j": "1"}))),
    _as("jane, one name", delete("delete", f"{MAPS}/m")),
    _as("jane", post("a role of hers", ROLES, _role("hers", _rule("get", "configmaps")))),
    post("role of roles", ROLES, _role("roles", _rule("*", "roles rolebindings", RBAC))),
    post("binding of roles", BINDINGS, _binding("jane3", "roles", USER)),
    _as(
        "jane, with roles",
        post("what she has", ROLES, _role("hers", _rule("get", "configmaps"))),
        until=status(201),
    ),
    _as("jane, with roles", post("what she has not", ROLES, _role("more", _rule("*", "secrets")))),
    _as(
        "jane, with roles",
        merge("more for a role", f"{ROLES}/hers", {"rules": [_rule("delete", "secrets")]}),
    ),
    _as(
        "jane, with roles",
        post(
            "a binding to a strong role",
            BINDINGS,
            _binding("strong", "cluster-admin", USER, kind="ClusterRole"),
        ),
    ),
    _as(
        "jane, with roles",
        post(
            "a binding to a weak role",
            BINDINGS,
            _binding("weak", "reader", {**USER, "name": "joe"}),
        ),
    ),
    _as(
        "jane, with roles",
        post(
            "a binding to no role", BINDINGS, _binding("none", "nothing", {**USER, "name": "joe"})
        ),
    ),
    _as(
        "jane, with roles",
        Ask(
            "apply of a strong role",
            "PATCH",
            f"{ROLES}/strong?fieldManager=j",
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "Role",
                "metadata": {"name": "strong"},
                "rules": [_rule("*", "*", "*")],
            },
            APPLY,
        ),
    ),
    post(
        "cluster role",
        CLUSTER_ROLES,
        {
            "metadata": {"name": "conf-view", "labels": {"conf": "1"}},
            "rules": [_rule("get", "nodes"), {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
    ),
    post(
        "aggregated cluster role",
        CLUSTER_ROLES,
        {
            "metadata": {"name": "conf-all"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"conf": "1"}}]},
            "rules": [],
        },
    ),
    post(
        "cluster binding",
        CLUSTER_BINDINGS,
        _binding("conf-jane", "conf-view", USER, kind="ClusterRole"),
    ),
    post("cluster binding to a role", CLUSTER_BINDINGS, _binding("conf-bad", "x", USER)),
    _as("jane, of the cluster", get("a node", "/api/v1/nodes/none"), until=status(404)),
    _as("jane, of the cluster", get("nodes", "/api/v1/nodes")),
    _may("get", "get", "configmaps"),
    _may("get one", "get", "configmaps", name="m"),
    _may("delete", "delete", "configmaps"),
    _may("delete one", "delete", "configmaps", name="m"),
    _may("all", "*", "*"),
    _may("as the administrator", "delete", "configmaps", headers={}),
    _may("a subresource", "get", "pods", subresource="log"),
    post(
        "may read a path",
        f"{REVIEWS}/selfsubjectaccessreviews",
        {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}},
        headers=JANE,
    ),
    post("may do nothing", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {}}),
    post(
        "may do both",
        f"{REVIEWS}/selfsubjectaccessreviews",
        {"spec": {"nonResourceAttributes": {"path": "/"}, "resourceAttributes": {"verb": "get"}}},
    ),
    post(
        "rules of jane",
        f"{REVIEWS}/selfsubjectrulesreviews",
        {"spec": {"namespace": NS}},
        headers=JANE,
    ),
    post("rules without a namespace", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {}}),
    post(
        "may jane",
        f"{REVIEWS}/subjectaccessreviews",
        {
            "spec": {
                "user": "jane",
                "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": NS},
            }
        },
    ),
    post(
        "may a group",
        f"{REVIEWS}/subjectaccessreviews",
        {
            "spec": {
                "groups": ["system:masters"],
                "resourceAttributes": {"verb": "get", "resource": "secrets"},
            }
        },
    ),
    post(
        "may nobody",
        f"{REVIEWS}/subjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ),
    post(
        "may jane here",
        of("authorization.k8s.io", NS, "localsubjectaccessreviews"),
        {
            "metadata": {"namespace": NS},
            "spec": {
                "user": "jane",
                "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": NS},
            },
        },
    ),
    post(
        "may jane elsewhere",
        of("authorization.k8s.io", NS, "localsubjectaccessreviews"),
        {
            "spec": {
                "user": "jane",
                "resourceAttributes": {"verb": "get", "resource": "configmaps", "namespace": "x"},
            }
        },
    ),
    post("who is jane", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=JANE),
    get("reviews listed", f"{REVIEWS}/selfsubjectaccessreviews"),
    _as("jane", get("impersonating", MAPS), {**JANE, "Impersonate-Group": "devs"}),
    get("impersonating a group only", MAPS, headers={"Impersonate-Group": "devs"}),
    get(
        "impersonating an account",
        MAPS,
        headers={"Impersonate-User": f"system:serviceaccount:{NS}:default"},
    ),
    get("impersonating with more", MAPS, headers={**JANE, "Impersonate-Extra-Reason": "why"}),
    post("account", core(NS, "serviceaccounts"), {"metadata": {"name": "robot"}}),
    post("token", f"{core(NS, 'serviceaccounts')}/robot/token", {"spec": {}}),
    post(
        "token that lives shortly",
        f"{core(NS, 'serviceaccounts')}/robot/token",
        {"spec": {"expirationSeconds": 60}},
    ),
    post("token of nobody", f"{core(NS, 'serviceaccounts')}/none/token", {"spec": {}}),
    post(
        "token for others",
        f"{core(NS, 'serviceaccounts')}/robot/token",
        {"spec": {"audiences": ["others"], "expirationSeconds": 600}},
    ),
    post(
        "token bound to a pod",
        f"{core(NS, 'serviceaccounts')}/robot/token",
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}},
    ),
    post(
        "token bound to a rock",
        f"{core(NS, 'serviceaccounts')}/robot/token",
        {"spec": {"boundObjectRef": {"kind": "Rock", "apiVersion": "v1", "name": "none"}}},
    ),
    get("robot, without rights", MAPS, headers=BY_TOKEN, anonymous=True),
    post(
        "binding of the robot",
        BINDINGS,
        _binding("robot", "reader", {"kind": "ServiceAccount", "name": "robot", "namespace": NS}),
    ),
    get("robot, reading", MAPS, headers=BY_TOKEN, anonymous=True, until=status(200)),
    get("robot, a secret", core(NS, "secrets"), headers=BY_TOKEN, anonymous=True),
    post(
        "who is the robot",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {},
        headers=BY_TOKEN,
        anonymous=True,
    ),
    post(
        "whose token",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": "${token:status.token}"}},
    ),
    post(
        "whose token, wrong",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"spec": {"token": "nonsense"}},
    ),
    get(
        "token for others, used here",
        MAPS,
        headers={"Authorization": "Bearer ${token for others:status.token}"},
        anonymous=True,
    ),
    get("a wrong token", MAPS, headers={"Authorization": "Bearer nonsense"}, anonymous=True),
    get("anonymous", MAPS, anonymous=True),
    get("anonymous health", "/healthz", anonymous=True),
    get("anonymous version", "/version", anonymous=True),
    delete("account gone", f"{core(NS, 'serviceaccounts')}/robot"),
    get("robot, gone", MAPS, headers=BY_TOKEN, anonymous=True, until=status(401)),
    delete("cluster binding gone", f"{CLUSTER_BINDINGS}/conf-jane"),
    delete("cluster roles gone", f"{CLUSTER_ROLES}?labelSelector=conf%3D1"),
    get("a bootstrap role", f"{CLUSTER_ROLES}/view"),
    get("the strongest role", f"{CLUSTER_ROLES}/cluster-admin"),
)
