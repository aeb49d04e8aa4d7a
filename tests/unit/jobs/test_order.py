"""Roles that start one after the other, and rules about failures."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.support.jobs import job, role

from lockstep.api.training import ReplicaStatus, TrainingJob
from lockstep.api.validation import problems
from lockstep.jobs.failures import Failure, judge
from lockstep.jobs.frameworks import FRAMEWORKS
from lockstep.jobs.objects import gang_spec
from lockstep.jobs.order import open_roles, waits_for

Json = dict[str, Any]


def staged(**counts: ReplicaStatus) -> TrainingJob:
    after = [{"role": "load", "condition": "Complete"}]
    made = job(role("load", 2), role("train", 2, after=after), framework="plain")
    return structs.replace(made, status=structs.replace(made.status, replica_statuses=counts))


CASES: list[tuple[dict[str, ReplicaStatus], set[str]]] = [
    ({}, {"load"}),
    ({"load": ReplicaStatus(created=2, active=2, ready=2)}, {"load"}),
    ({"load": ReplicaStatus(created=2, succeeded=2)}, {"load", "train"}),
    ({"load": ReplicaStatus(), "train": ReplicaStatus(created=1)}, {"load", "train"}),
]


@pytest.mark.parametrize(("counts", "wanted"), CASES)
def test_a_role_begins_once_those_before_it_are_done(
    counts: dict[str, ReplicaStatus], wanted: set[str]
) -> None:
    given = staged(**counts)
    assert open_roles(given) == wanted
    assert [g.min for g in gang_spec(given).groups] == [2, 2 if "train" in wanted else 0]
    assert bool(waits_for(given)) == ("train" not in wanted)


WRONG: list[tuple[list[Json], Json, str]] = [
    ([role("a", 1, after=[{"role": "b"}])], {}, "spec.roles[0].after[0].role"),
    (
        [role("a", 1, after=[{"role": "b"}]), role("b", 1, after=[{"role": "a"}])],
        {},
        "spec.roles[0].after[0].role",
    ),
    ([role()], {"recovery": {"rules": [{"action": "Fail", "roles": ["x"]}]}}, "spec.recovery"),
]


@pytest.mark.parametrize(("roles", "spec", "field"), WRONG)
def test_an_order_that_cannot_be_is_named(roles: list[Json], spec: Json, field: str) -> None:
    found = problems(job(*roles, framework="plain", **spec))
    assert found[0].field.startswith(field)


RULES: list[tuple[Json, int, str, int]] = [
    ({"action": "Fail", "exitCodes": ["1-127"]}, 3, "Failed", 0),
    ({"action": "Fail", "exitCodes": ["1-127"]}, 130, "Pending", 1),
    ({"action": "Fail", "roles": ["ps"]}, 3, "Pending", 1),
    ({"action": "Fail", "roles": ["worker"]}, 3, "Failed", 0),
    ({"action": "RestartUncounted", "exitCodes": ["42"]}, 42, "Pending", 0),
]


@pytest.mark.parametrize(("rule", "code", "phase", "restarts"), RULES)
def test_the_first_rule_that_fits_is_followed(
    rule: Json, code: int, phase: str, restarts: int
) -> None:
    given = job(role("ps", 1), role(), framework="plain", recovery={"rules": [rule]})
    failed = Failure("digits-worker-1", "u", "it failed", code=code)
    found = judge(given, FRAMEWORKS["plain"], given.status, [failed], 0.0)
    assert (found.phase, found.restarts) == (phase, restarts)
