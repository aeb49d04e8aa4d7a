"""Policies: which is for a node, and what limits what is done without being asked."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.health_policy import HealthPolicy, HealthPolicySpec
from lockstep.api.meta import ObjectMeta
from lockstep.api.node_health import Finding
from lockstep.health.core.policy import DEFAULT, Acted, chosen, objection
from lockstep.health.remediation.plan import wanted

NOW = 10_000.0


def policy(name: str, **spec: Any) -> HealthPolicy:
    return HealthPolicy(metadata=ObjectMeta(name=name), spec=HealthPolicySpec(**spec))


def test_the_policy_matching_most_labels_of_a_node_applies() -> None:
    some = [
        policy("all", share=0.1),
        policy("big", nodes={"gpu": "h100"}, share=0.2),
        policy("bigger", nodes={"gpu": "h100", "zone": "a"}, share=0.3),
        policy("other", nodes={"gpu": "a100"}, share=0.4),
    ]
    assert chosen(some, {"gpu": "h100", "zone": "a"}).share == 0.3
    assert chosen(some, {"gpu": "h100"}).share == 0.2
    assert chosen(some, {}).share == 0.1
    assert chosen([], {}) is DEFAULT


def held(count: int, at: float | None = None) -> list[Acted]:
    return [Acted(f"n{i}", True, at) for i in range(count)]


@pytest.mark.parametrize(
    ("spec", "size", "acted", "why"),
    [
        ({}, 8, held(1), ""),
        ({}, 8, held(2), "spec.share"),
        ({}, 2, [], ""),
        ({}, 2, held(1), "spec.share"),
        ({"share": 1.0, "per_hour": 2}, 9, held(2, NOW - 60), "spec.perHour"),
        ({"share": 1.0, "per_hour": 2}, 9, held(2, NOW - 3700), ""),
        ({"cool_down": "10m"}, 9, [Acted("me", False, NOW - 60)], "spec.coolDown: 10m"),
        ({"cool_down": "10m"}, 9, [Acted("me", False, NOW - 700)], ""),
    ],
    ids=["below", "full", "one of few", "none more", "hour", "long ago", "again", "cooled down"],
)
def test_limits_name_the_field_that_holds(
    spec: dict[str, Any], size: int, acted: list[Acted], why: str
) -> None:
    found = objection(HealthPolicySpec(**spec), "me", size, acted, NOW)
    assert why in found if why else found == ""


@pytest.mark.parametrize(
    ("spec", "acts"),
    [
        ({}, True),
        ({"acts": ["reset_gpu"]}, False),
        ({"acts": []}, False),
        ({"confidence": 0.95}, False),
        ({"confidence": 0.9}, True),
    ],
)
def test_a_policy_says_what_needs_no_asking(spec: dict[str, Any], acts: bool) -> None:
    one = Finding(cause="bad", device="gpu/3", action="isolate_node", confidence=0.9)
    assert wanted([one], HealthPolicySpec(**spec)).anything == acts
