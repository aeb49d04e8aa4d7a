"""Different jobs that fail on one node count against it; one job alone does not."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from lockstep.api import names
from lockstep.api.core import Node, NodeSpec, NodeStatus, Taint
from lockstep.api.diagnosis import Class, Diagnosis, Place
from lockstep.api.health_policy import HealthPolicySpec
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_health import Finding
from lockstep.health.core.diagnose import with_earlier
from lockstep.health.core.lemons import ERRORS, FAILS, blamed, counted
from lockstep.health.core.policy import away
from lockstep.health.remediation.lemons import has_peer

XID = Finding(cause="x", class_="user", device="gpu/3", evidence="NVRM: Xid (PCI): 13, x")


@pytest.mark.parametrize(
    ("class_", "nodes", "findings", "blame"),
    [
        ("hardware", ["n"], [], (FAILS, "")),
        ("unknown", ["n"], [], (FAILS, "")),
        ("hardware", ["n", "m"], [], None),
        ("user", ["n"], [], None),
        ("user", ["n"], [XID], (ERRORS, "gpu/3")),
        ("storage", ["n"], [], None),
    ],
)
def test_what_a_failed_job_counts_against(
    class_: Class, nodes: list[str], findings: list[Finding], blame: tuple[str, str] | None
) -> None:
    assert blamed(Diagnosis(class_=class_, place=Place(nodes=nodes)), findings) == blame


@pytest.mark.parametrize(
    ("jobs", "most", "action"),
    [
        (["a/1", "a/1", "a/1"], 3, "observe"),
        (["a/1", "a/2"], 3, "observe"),
        (["a/1", "a/2", "a/1", "b/1"], 3, "isolate_node"),
        (["a/1", "a/2", "a/3"], 0, "observe"),
    ],
    ids=["one job", "two jobs", "three jobs", "never"],
)
def test_so_many_different_jobs_make_a_lemon(jobs: list[str], most: int, action: str) -> None:
    findings: list[Finding] = []
    for job in jobs:
        findings = [counted(findings, (FAILS, ""), job, most)]
    assert findings[0].action == action
    assert all(job in findings[0].evidence for job in jobs)


@pytest.mark.parametrize(
    ("others", "peer"),
    [
        ({}, False),
        ({"b": {}}, True),
        ({"b": {"ready": "False"}}, False),
        ({"b": {"unschedulable": True}}, False),
        ({"b": {"kind": "simulated"}}, False),
        ({"b": {"taint": names.UNHEALTHY_TAINT}}, False),
        ({"b": {"ready": "False"}, "c": {}}, True),
    ],
    ids=["alone", "two", "not ready", "cordoned", "simulated", "ill itself", "one of two"],
)
def test_an_only_node_is_not_told_from_its_jobs(
    others: dict[str, dict[str, Any]], peer: bool
) -> None:
    assert (
        has_peer("a", [_node("a"), *(_node(name, **told) for name, told in others.items())]) == peer
    )


def _node(
    name: str,
    ready: Literal["True", "False"] = "True",
    kind: str = "",
    taint: str = "",
    unschedulable: bool = False,
) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={names.NODE_KIND_LABEL: kind} if kind else {}),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=[Taint(key=taint, effect="NoSchedule")] if taint else [],
        ),
        status=NodeStatus(conditions=[Condition(type="Ready", status=ready)]),
    )


def test_an_earlier_success_makes_the_user_less_guilty() -> None:
    told = Diagnosis(class_="user", cause="c", confidence=0.9, evidence=["e"])
    after = with_earlier(told, "yesterday")
    assert after.confidence == 0.63 and "yesterday" in after.evidence[-1]
    assert with_earlier(told, "") == told


def test_storage_is_away_while_nodes_say_so_of_late() -> None:
    now = 1_767_225_700.0  # 2026-01-01T00:01:40Z
    late = Finding(cause="s", class_="storage", action="pause_job", last="2026-01-01T00:01:00Z")
    old = Finding(cause="s", class_="storage", action="pause_job", last="2025-12-31T23:59:00Z")
    assert away([("b", late), ("a", late), ("c", old), ("d", XID)], now) == ["a", "b"]
    assert HealthPolicySpec().storage_away == 2
