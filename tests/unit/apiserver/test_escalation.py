"""RBAC: nobody grants what they lack, nor acts as whom they may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.roles import JANE, Json, binding, granting, pods, rbac_with, role, rules

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


def test_rights_are_granted_by_the_path_not_the_body() -> None:
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
