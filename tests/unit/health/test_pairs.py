"""A node that is to come back is held against what two healthy nodes reach between them."""

from __future__ import annotations

import pytest

from lockstep.api import names
from lockstep.api.core import Node, NodeSpec, NodeStatus, Taint
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.network import Measured, NodeAnswer
from lockstep.health.remediation.pairs import judged, partners


def node(name: str, ready: str = "True", taint: str = "", kind: str = "") -> Node:
    taints = [Taint(key=taint, effect="NoSchedule")] if taint else []
    labels = {names.NODE_KIND_LABEL: kind} if kind else {}
    status = NodeStatus(conditions=[Condition(type="Ready", status=ready)])
    return Node(
        metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=taints), status=status
    )


def test_partners_are_well_and_measure() -> None:
    some = [
        node("sick"),
        node("lost", ready="Unknown"),
        node("ill", taint=names.UNHEALTHY_TAINT),
        node("sim", kind="simulated"),
        node("a"),
        node("b"),
        node("c"),
    ]
    found = partners(some, "sick")
    assert len(found) == 2 and set(found) < {"a", "b", "c"}
    assert partners(some[:4], "sick") == []


def answers(own: list[float | str], usual: float = 10.0) -> dict[str, NodeAnswer]:
    def one(peer: str, what: float | str) -> Measured:
        if isinstance(what, str):
            return Measured(peer=peer, rail="r", problem=what)
        return Measured(peer=peer, rail="r", rate=what, back=what)

    measured = [one(peer, what) for peer, what in zip("ab", own, strict=True)]
    between = [Measured(peer="b", rail="r", rate=usual, back=usual)]
    return {
        "sick": NodeAnswer(state="done", measured=measured),
        "a": NodeAnswer(state="done", measured=between),
        "b": NodeAnswer(state="done"),
    }


@pytest.mark.parametrize(
    ("own", "state"),
    [
        ([9.0, 9.5], "ok"),
        ([2.0, 2.1], "failed"),
        ([9.0, "no answer"], "ok"),
        (["no route", "no route"], "failed"),
    ],
    ids=["as the others", "slow", "one peer is silent", "no peer is reached"],
)
def test_the_rate_of_the_node(own: list[float | str], state: str) -> None:
    assert judged("sick", answers(own)).state == state


@pytest.mark.parametrize(
    "told",
    [{}, {"sick": NodeAnswer(state="done", problem="no rail")}],
    ids=["no agent", "no rail"],
)
def test_what_cannot_be_measured_is_skipped(told: dict[str, NodeAnswer]) -> None:
    assert judged("sick", told).state == "skipped"


def test_one_bad_rail_of_two_keeps_the_node_away() -> None:
    def rails(first: float, second: float) -> list[Measured]:
        both = (("r0", first), ("r1", second))
        return [Measured(peer="b", rail=rail, rate=rate, back=rate) for rail, rate in both]

    told = {
        "sick": NodeAnswer(
            state="done",
            measured=[
                *rails(10.0, 2.0),
                Measured(peer="a", rail="r0", rate=10.0, back=10.0),
                Measured(peer="a", rail="r1", rate=2.0, back=10.0),
            ],
        ),
        "a": NodeAnswer(state="done", measured=rails(10.0, 10.0)),
        "b": NodeAnswer(state="done"),
    }
    found = judged("sick", told)
    assert found.state == "failed"
    assert "r1: sick to b" in found.evidence
    assert "r0: " not in found.evidence
