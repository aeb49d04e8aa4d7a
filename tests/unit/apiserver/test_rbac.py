"""RBAC: what roles and bindings allow, kept up to date by events."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.apiserver.auth import bootstrap
from lockstep.apiserver.auth.access import explain, refusal, require
from lockstep.apiserver.auth.escalation import Target, check_grant
from lockstep.apiserver.auth.identity import (
    ANONYMOUS,
    MASTERS,
    User,
    authenticated,
    service_account,
)
from lockstep.apiserver.auth.impersonation import effective_user
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Attributes, Rule, missing
from lockstep.apiserver.status import StatusError

Json = dict[str, Any]
JANE = authenticated("jane", ["dev"])


def role(name: str, *rules: Json, namespace: str = "", **more: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata.update(more.pop("metadata", {}))
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": metadata, "rules": list(rules), **more}


def binding(name: str, to: str, *subjects: str, namespace: str = "", kind: str = "") -> Json:
    listed = []
    for subject in subjects:
        subject_kind, _, subject_name = subject.partition(":")
        listed.append({"kind": subject_kind, "name": subject_name, "namespace": "ci"})
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"kind": kind or "ClusterRole", "name": to}
    return {"metadata": metadata, "roleRef": reference, "subjects": listed}


def rbac_with(*objects: Json) -> Rbac:
    rbac = Rbac()
    for obj in objects:
        is_binding = "roleRef" in obj
        scope = "" if obj["metadata"].get("namespace") else "cluster"
        rbac.put(f"{scope}{'rolebindings' if is_binding else 'roles'}", obj)
    return rbac


def granting(rule: Json, namespace: str = "") -> Rbac:
    return rbac_with(role("r", rule), binding("b", "r", "User:jane", namespace=namespace))


def pods(*verbs: str, **more: Any) -> Json:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs), **more}


@pytest.mark.parametrize(
    ("rule", "wish", "allowed"),
    [
        (pods("get"), Attributes("get", resource="pods"), True),
        (pods("get"), Attributes("list", resource="pods"), False),
        (pods("*"), Attributes("list", resource="pods"), True),
        (pods("get"), Attributes("get", resource="pods", subresource="log"), False),
        (pods("get"), Attributes("get", group="apps", resource="pods"), False),
        (
            {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
            Attributes("get", resource="pods", subresource="log"),
            True,
        ),
        (
            {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
            Attributes("get", resource="pods"),
            False,
        ),
        (
            {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["update"]},
            Attributes("update", group="apps", resource="deployments", subresource="scale"),
            True,
        ),
        (
            {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["update"]},
            Attributes("update", group="apps", resource="deployments"),
            False,
        ),
        (
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            Attributes("patch", group="x", resource="y", subresource="z"),
            True,
        ),
        (pods("get", resourceNames=["a"]), Attributes("get", resource="pods", name="a"), True),
        (pods("get", resourceNames=["a"]), Attributes("get", resource="pods", name="b"), False),
        (pods("list", resourceNames=["a"]), Attributes("list", resource="pods"), False),
        ({"nonResourceURLs": ["/x"], "verbs": ["get"]}, Attributes("get", path="/x"), True),
        ({"nonResourceURLs": ["/x"], "verbs": ["get"]}, Attributes("get", path="/x/y"), False),
        ({"nonResourceURLs": ["/x/*"], "verbs": ["get"]}, Attributes("get", path="/x/y"), True),
        ({"nonResourceURLs": ["/x/*"], "verbs": ["get"]}, Attributes("get", path="/y"), False),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, Attributes("post", path="/y"), True),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, Attributes("get", resource="pods"), False),
        (
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            Attributes("get", path="/metrics"),
            False,
        ),
    ],
)
def test_what_a_rule_allows(rule: Json, wish: Attributes, allowed: bool) -> None:
    rbac = granting(rule)
    assert rbac.allows(JANE, wish) is allowed
    assert rbac.allows(JANE, wish) is allowed, "the remembered decision is the same"
    assert Rule.from_object(rule).allows(wish) is allowed


@pytest.mark.parametrize(
    ("subject", "user", "allowed"),
    [
        ("User:jane", JANE, True),
        ("User:joe", JANE, False),
        ("Group:dev", JANE, True),
        ("Group:jane", JANE, False),
        ("User:dev", JANE, False),
        ("Group:system:authenticated", JANE, True),
        ("Group:system:authenticated", ANONYMOUS, False),
        ("Group:system:unauthenticated", ANONYMOUS, True),
        ("ServiceAccount:builder", service_account("ci", "builder"), True),
        ("ServiceAccount:builder", service_account("other", "builder"), False),
        ("Group:system:serviceaccounts:ci", service_account("ci", "x"), True),
        ("User:nobody", User("root", (MASTERS,)), True),
    ],
)
def test_whom_a_binding_means(subject: str, user: User, allowed: bool) -> None:
    rbac = rbac_with(role("r", pods("get")), binding("b", "r", subject))
    assert rbac.allows(user, Attributes("get", resource="pods")) is allowed


@pytest.mark.parametrize(
    ("objects", "namespace", "allowed"),
    [
        ([role("r", pods("get")), binding("b", "r", "User:jane")], "a", True),
        ([role("r", pods("get")), binding("b", "r", "User:jane")], "", True),
        ([role("r", pods("get")), binding("b", "r", "User:jane", namespace="a")], "a", True),
        ([role("r", pods("get")), binding("b", "r", "User:jane", namespace="a")], "b", False),
        ([role("r", pods("get")), binding("b", "r", "User:jane", namespace="a")], "", False),
        (
            [
                role("r", pods("get"), namespace="a"),
                binding("b", "r", "User:jane", namespace="a", kind="Role"),
            ],
            "a",
            True,
        ),
        (
            [
                role("r", pods("get"), namespace="b"),
                binding("b", "r", "User:jane", namespace="a", kind="Role"),
            ],
            "a",
            False,
        ),
        ([binding("b", "missing", "User:jane")], "a", False),
        ([role("r", pods("get")), binding("b", "r", "User:jane", kind="Role")], "a", False),
        ([role("r", pods("get")), binding("b", "r", "User:jane", kind="Other")], "a", False),
    ],
)
def test_where_a_binding_holds(objects: list[Json], namespace: str, allowed: bool) -> None:
    wish = Attributes("get", resource="pods", namespace=namespace)
    assert rbac_with(*objects).allows(JANE, wish) is allowed


def test_changes_take_effect_at_once() -> None:
    rbac = granting(pods("get"))
    wish = Attributes("get", resource="pods")
    assert rbac.allows(JANE, wish)
    rbac.put("clusterroles", role("r", pods("list")))
    assert not rbac.allows(JANE, wish)
    rbac.put("clusterroles", role("r", pods("get")))
    rbac.put("clusterrolebindings", binding("b", "r", "User:joe"))
    assert not rbac.allows(JANE, wish)
    assert rbac.allows(authenticated("joe"), wish)
    rbac.remove("clusterrolebindings", "", "b")
    assert not rbac.allows(authenticated("joe"), wish)
    rbac.put("clusterrolebindings", binding("b", "r", "User:jane"))
    rbac.remove("clusterroles", "", "r")
    assert not rbac.allows(JANE, wish)


def test_aggregated_roles_gather_labelled_ones_through_each_other() -> None:
    def labelled(into: str) -> Json:
        return {"labels": {"into": into}}

    def gathers(what: str) -> Json:
        return {"clusterRoleSelectors": [{"matchLabels": {"into": what}}]}

    rbac = rbac_with(
        role("outer", aggregationRule=gathers("outer")),
        role("inner", aggregationRule=gathers("inner"), metadata=labelled("outer")),
        role("leaf", pods("get"), metadata=labelled("inner")),
        role("loop", aggregationRule=gathers("loop"), metadata=labelled("loop")),
        binding("b", "outer", "User:jane"),
    )
    assert rbac.allows(JANE, Attributes("get", resource="pods"))
    assert dict(rbac.aggregated()) == {
        "outer": (Rule.from_object(pods("get")),),
        "inner": (Rule.from_object(pods("get")),),
    }
    rbac.put("clusterroles", role("leaf", pods("list"), metadata=labelled("inner")))
    assert not rbac.allows(JANE, Attributes("get", resource="pods"))


def test_the_rules_of_a_user_are_listed_once() -> None:
    rbac = rbac_with(
        role("r", pods("get")),
        binding("b", "r", "User:jane", "Group:dev"),
        binding("c", "r", "User:jane", namespace="a"),
    )
    assert rbac.rules_of(JANE, "a") == (Rule.from_object(pods("get")),)
    assert rbac.rules_of(User("root", (MASTERS,)), "a")[0].allows(Attributes("x", resource="y"))


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (
            Attributes("list", resource="pods", namespace="a"),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" '
            'in the namespace "a"',
        ),
        (
            Attributes("patch", "apps", "v1", "deployments", "scale", name="d"),
            'deployments.apps "d" is forbidden: User "jane" cannot patch resource '
            '"deployments/scale" in API group "apps" at the cluster scope',
        ),
        (
            Attributes("get", path="/metrics"),
            'forbidden: User "jane" cannot get path "/metrics"',
        ),
    ],
)
def test_refusals_say_who_cannot_do_what(wish: Attributes, message: str) -> None:
    with pytest.raises(StatusError) as error:
        require(Rbac(), JANE, wish)
    assert (error.value.code, error.value.message) == (403, message)
    assert explain(JANE, wish) in refusal(JANE, wish).message


@pytest.mark.parametrize(
    ("owned", "wanted", "lacking"),
    [
        ([pods("get", "list")], [pods("get")], []),
        ([pods("get"), pods("list")], [pods("get", "list")], []),
        ([pods("get")], [pods("get", "list")], [pods("list")]),
        ([pods("*")], [pods("get", "*")], []),
        ([pods("get")], [pods("*")], [pods("*")]),
        ([pods("get")], [pods("get", resourceNames=["a"])], []),
        ([pods("get", resourceNames=["a"])], [pods("get")], [pods("get")]),
        (
            [pods("get", resourceNames=["a"])],
            [pods("get", resourceNames=["a", "b"])],
            [pods("get", resourceNames=["b"])],
        ),
        (
            [{"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["get"]}],
            [{"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}],
            [],
        ),
        (
            [{"nonResourceURLs": ["/api/*"], "verbs": ["get"]}],
            [{"nonResourceURLs": ["/api/v1", "/apis"], "verbs": ["get"]}],
            [{"nonResourceURLs": ["/apis"], "verbs": ["get"]}],
        ),
    ],
)
def test_what_is_missing_to_cover_rules(
    owned: list[Json], wanted: list[Json], lacking: list[Json]
) -> None:
    found = missing(map(Rule.from_object, owned), map(Rule.from_object, wanted))
    assert [rule.to_object() for rule in found] == lacking


names = st.sampled_from(["a", "b", "*"])
some = st.frozensets(names, min_size=1, max_size=2)
rules = st.builds(Rule, some, some, some, st.frozensets(st.sampled_from(["x", "y"]), max_size=2))


@given(st.lists(rules, max_size=3), rules)
def test_what_is_covered_allows_no_more(owned: list[Rule], wanted: Rule) -> None:
    wishes = [
        Attributes(verb, group, resource=resource, name=name)
        for verb in "abc"
        for group in "abc"
        for resource in "abc"
        for name in "xyz"
    ]
    if not missing(owned, [wanted]):
        for wish in wishes:
            assert not wanted.allows(wish) or any(rule.allows(wish) for rule in owned)


@pytest.mark.parametrize(
    ("held", "plural", "obj", "refused"),
    [
        ([pods("get")], "roles", role("n", pods("get"), namespace="a"), ""),
        ([pods("get")], "roles", role("n", pods("get", "list"), namespace="a"), "not currently"),
        (
            [
                {
                    "apiGroups": ["rbac.authorization.k8s.io"],
                    "resources": ["roles"],
                    "verbs": ["escalate"],
                }
            ],
            "roles",
            role("n", pods("list"), namespace="a"),
            "",
        ),
        ([pods("get")], "rolebindings", binding("n", "held", "User:x", namespace="a"), ""),
        (
            [pods("get")],
            "rolebindings",
            binding("n", "cluster-admin", "User:x", namespace="a"),
            'Verbs:["*"]',
        ),
        (
            [
                {
                    "apiGroups": ["rbac.authorization.k8s.io"],
                    "resources": ["clusterroles"],
                    "resourceNames": ["cluster-admin"],
                    "verbs": ["bind"],
                }
            ],
            "clusterrolebindings",
            binding("n", "cluster-admin", "User:x"),
            "",
        ),
        ([pods("*")], "clusterrolebindings", binding("n", "absent", "User:x"), "not found"),
        (
            [pods("*")],
            "clusterroles",
            role("n", aggregationRule={"clusterRoleSelectors": [{}]}),
            "must have cluster-admin privileges to use the aggregationRule",
        ),
    ],
)
def test_nobody_grants_what_they_lack(
    held: list[Json], plural: str, obj: Json, refused: str
) -> None:
    rbac = rbac_with(role("held", *held), binding("b", "held", "User:jane"))
    rbac.put(
        "clusterroles",
        role("cluster-admin", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
    )
    target = Target(plural, obj["metadata"].get("namespace", ""))
    if not refused:
        check_grant(rbac, JANE, target, obj)
        return
    with pytest.raises(StatusError) as error:
        check_grant(rbac, JANE, target, obj)
    assert refused in error.value.message
    check_grant(rbac, User("root", (MASTERS,)), target, obj)
    labelled = {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}
    check_grant(rbac, JANE, target, labelled, obj)


def test_what_is_granted_is_told_from_the_path_and_not_from_the_body() -> None:
    """A body without a namespace must not let a role be mistaken for a harmless cluster role."""
    rbac = rbac_with(
        role("r", pods("get")),
        role("r", pods("*"), namespace="a"),
        binding("b", "r", "User:jane"),
    )
    grant = binding("n", "r", "User:jane", kind="Role")
    with pytest.raises(StatusError, match="not currently held"):
        check_grant(rbac, JANE, Target("rolebindings", "a"), grant)
    escalate = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles"],
        "resourceNames": ["mine"],
        "verbs": ["escalate"],
    }
    rbac = rbac_with(role("r", escalate), binding("b", "r", "User:jane"))
    renamed = role("mine", pods("*"), namespace="a")
    check_grant(rbac, JANE, Target("roles", "a", "mine"), renamed, {})
    with pytest.raises(StatusError, match="not currently held"):
        check_grant(rbac, JANE, Target("roles", "a", "other"), renamed, {})


IMPERSONATORS = {
    "apiGroups": ["", "authentication.k8s.io"],
    "resources": ["users", "groups", "serviceaccounts", "uids", "userextras/scopes"],
    "verbs": ["impersonate"],
}


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"accept": "*/*"}, JANE),
        ({"impersonate-user": "joe"}, authenticated("joe")),
        (
            {"impersonate-user": "joe", "impersonate-group": "dev, ops"},
            User("joe", ("dev", "ops", "system:authenticated")),
        ),
        (
            {"impersonate-user": "system:serviceaccount:ci:builder"},
            service_account("ci", "builder"),
        ),
        ({"impersonate-user": "system:anonymous"}, ANONYMOUS),
        (
            {"impersonate-user": "joe", "impersonate-extra-scopes": "a", "impersonate-uid": "u"},
            authenticated("joe", uid="u", extra={"scopes": ["a"]}),
        ),
    ],
)
def test_impersonation(headers: dict[str, str], user: User) -> None:
    assert effective_user(granting(IMPERSONATORS), JANE, headers) == user


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"impersonate-user": "joe"},
            'users "joe" is forbidden: User "jane" cannot impersonate resource "users" in API '
            'group "" at the cluster scope',
        ),
        (
            {"impersonate-group": "dev"},
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"dev"}, '
            "Extra:map[string][]string(nil)} without impersonating a user name",
        ),
    ],
)
def test_impersonation_that_is_refused(headers: dict[str, str], message: str) -> None:
    with pytest.raises(StatusError) as error:
        effective_user(Rbac(), JANE, headers)
    assert error.value.message == message


@pytest.fixture(scope="module")
def bootstrapped() -> Rbac:
    rbac = Rbac()
    for plural, obj in bootstrap.objects():
        rbac.put(plural, json.loads(json.dumps(obj)))
    return rbac


@pytest.mark.parametrize(
    ("user", "wish", "allowed"),
    [
        ("lockstep:scheduler", Attributes("create", resource="pods", subresource="binding"), True),
        ("lockstep:scheduler", Attributes("get", resource="secrets", namespace="a"), False),
        ("lockstep:scheduler", Attributes("create", resource="pods", namespace="a"), False),
        ("lockstep:controllers", Attributes("create", resource="pods", namespace="a"), True),
        (
            "lockstep:controllers",
            Attributes("create", resource="pods", subresource="binding"),
            False,
        ),
        ("lockstep:controllers", Attributes("delete", resource="nodes"), False),
        ("lockstep:process-node", Attributes("get", resource="secrets", namespace="a"), True),
        ("lockstep:simulated-nodes", Attributes("get", resource="secrets", namespace="a"), False),
        (
            "lockstep:simulated-nodes",
            Attributes("patch", resource="pods", subresource="status", namespace="a"),
            True,
        ),
        (
            "lockstep:process-node",
            Attributes(
                "create", "rbac.authorization.k8s.io", resource="clusterrolebindings", name="x"
            ),
            False,
        ),
        ("anyone", Attributes("get", path="/apis/apps"), True),
        ("anyone", Attributes("get", path="/metrics"), False),
        ("anyone", Attributes("list", resource="pods"), False),
        (
            "anyone",
            Attributes("create", "authorization.k8s.io", resource="selfsubjectaccessreviews"),
            True,
        ),
    ],
)
def test_what_comes_with_a_cluster(
    bootstrapped: Rbac, user: str, wish: Attributes, allowed: bool
) -> None:
    assert bootstrapped.allows(authenticated(user), wish) is allowed


@pytest.mark.parametrize(
    ("role_name", "wish", "allowed"),
    [
        ("view", Attributes("list", "lockstep.dev", resource="trainingjobs"), True),
        ("view", Attributes("get", resource="secrets"), False),
        ("edit", Attributes("get", resource="secrets"), True),
        ("edit", Attributes("create", "lockstep.dev", resource="trainingjobs"), True),
        ("edit", Attributes("create", "rbac.authorization.k8s.io", resource="roles"), False),
        ("admin", Attributes("create", "rbac.authorization.k8s.io", resource="roles"), True),
        ("admin", Attributes("list", "lockstep.dev", resource="trainingjobs"), True),
        ("admin", Attributes("delete", resource="nodes"), False),
        ("cluster-admin", Attributes("delete", resource="nodes"), True),
    ],
)
def test_the_roles_for_people(
    bootstrapped: Rbac, role_name: str, wish: Attributes, allowed: bool
) -> None:
    rules_of_role = bootstrapped.role_rules("ClusterRole", role_name, "")
    assert any(rule.allows(wish) for rule in rules_of_role) is allowed


@pytest.mark.parametrize(
    ("present", "autoupdate", "lacking"),
    [
        ([pods("get")], "true", [pods("list")]),
        ([pods("get", "list"), pods("delete")], "true", []),
        ([pods("*")], "true", []),
        ([], "true", [pods("get", "list")]),
        ([], "false", []),
    ],
)
def test_roles_of_an_older_release_get_what_they_lack(
    present: list[Json], autoupdate: str, lacking: list[Json]
) -> None:
    key = "rbac.authorization.kubernetes.io/autoupdate"
    there = role("r", *present, metadata={"annotations": {key: autoupdate}})
    assert bootstrap.lacking_rules(there, role("r", pods("get", "list"))) == lacking


def test_a_check_costs_microseconds(bootstrapped: Rbac) -> None:
    user = authenticated("lockstep:controllers", ["system:nodes"])
    wishes = [Attributes("get", resource="pods", namespace="a", name=str(n)) for n in range(1000)]
    bootstrapped.allows(user, wishes[0])
    start = time.process_time()
    assert all(bootstrapped.allows(user, wish) for wish in wishes)
    assert (time.process_time() - start) / len(wishes) < 50e-6
