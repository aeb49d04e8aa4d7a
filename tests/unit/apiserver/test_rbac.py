"""RBAC: what roles and bindings allow, kept up to date by events."""

import pytest
from tests.support.roles import JANE, Json, binding, granting, pods, rbac_with, role

from lockstep.apiserver.auth.access import explain, refusal, require
from lockstep.apiserver.auth.identity import (
    ANONYMOUS,
    MASTERS,
    User,
    authenticated,
    service_account,
)
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Attributes, Rule
from lockstep.apiserver.status import StatusError


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
