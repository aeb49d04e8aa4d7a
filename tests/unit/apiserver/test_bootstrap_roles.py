"""RBAC: the roles and bindings that come with a cluster."""

import json
import time

import pytest
from tests.support.roles import Json, pods, role

from lockstep.apiserver.auth import bootstrap
from lockstep.apiserver.auth.identity import (
    authenticated,
)
from lockstep.apiserver.auth.rbac import Rbac
from lockstep.apiserver.auth.rules import Attributes


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
        ("lockstep:controllers", Attributes("delete", resource="namespaces"), False),
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
