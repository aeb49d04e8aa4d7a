"""The rules by which nodes are lost and pods evicted."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import Node, Pod, Taint, Toleration
from lockstep.api.wire import convert
from lockstep.health.core import lifecycle as rules

NOW = 1000.0
NO_EXECUTE = Taint("node.kubernetes.io/unreachable", "NoExecute")


def node(ready: str = "True", **spec: Any) -> Node:
    status = {"conditions": [{"type": "Ready", "status": ready}]} if ready else {}
    return convert({"metadata": {"name": "n"}, "spec": spec, "status": status}, Node)


def pod(*tolerations: dict[str, Any]) -> Pod:
    return convert({"metadata": {"name": "p"}, "spec": {"tolerations": list(tolerations)}}, Pod)


def test_silence_counts_from_the_last_sign_on_our_clock() -> None:
    signs = rules.Signs()
    first, second = rules.mark(node(), "1"), rules.mark(node(), "2")
    assert signs.quiet("n", first, 5.0) == 0.0
    assert signs.quiet("n", first, 25.0) == 20.0
    assert signs.quiet("n", second, 30.0) == 0.0


def test_what_we_write_ourselves_is_no_sign_of_life() -> None:
    signs = rules.Signs()
    signs.quiet("n", rules.mark(node(), "1"), 0.0)
    told = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    ours = convert({"metadata": {"name": "n"}, "status": {"conditions": [told]}}, Node)
    assert signs.quiet("n", rules.mark(ours, "1"), 70.0) == 70.0
    assert signs.quiet("n", rules.mark(node(), "2"), 80.0) == 0.0


@pytest.mark.parametrize(
    ("there", "lease", "seconds"),
    [(node(), 40, 50.0), (node(), 133, 166.25), (node(""), 0, 60.0)],
)
def test_grace_follows_the_lease(there: Node, lease: float, seconds: float) -> None:
    assert rules.grace(there, lease) == seconds


def test_nothing_evicts_while_no_node_is_ready() -> None:
    lost = node("Unknown")
    assert {t.effect for t in rules.taints(lost, "t")} == {"NoSchedule", "NoExecute"}
    assert {t.effect for t in rules.taints(lost, "t", evicts=False)} == {"NoSchedule"}


def test_taints_of_others_stay() -> None:
    other = {"key": "mine", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    assert [t.key for t in rules.taints(node("True", taints=[other]), "t")] == ["mine"]


@pytest.mark.parametrize(
    ("tolerations", "gone", "again"),
    [
        ([], True, None),
        ([{"operator": "Exists"}], False, None),
        ([{"operator": "Exists", "tolerationSeconds": 5}], True, None),
        ([{"operator": "Exists", "tolerationSeconds": 30}], False, 20.0),
        ([{"key": "other", "operator": "Exists"}], True, None),
    ],
    ids=["none", "for ever", "ran out", "still", "of another"],
)
def test_pods_go_when_their_toleration_ends(
    tolerations: list[dict[str, Any]], gone: bool, again: float | None
) -> None:
    since = {NO_EXECUTE: NOW - 10}
    tainted = node("Unknown", taints=[{"key": NO_EXECUTE.key, "effect": "NoExecute"}])
    found = rules.evictions(tainted, [pod(*tolerations)], since, NOW)
    assert (bool(found.now), found.again) == (gone, again)


@pytest.mark.parametrize(
    ("one", "bears"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key=NO_EXECUTE.key), True),
        (Toleration(key=NO_EXECUTE.key, value="x"), False),
        (Toleration(key=NO_EXECUTE.key, effect="NoSchedule", operator="Exists"), False),
        (Toleration(), False),
    ],
)
def test_tolerations_match_as_in_kubernetes(one: Toleration, bears: bool) -> None:
    assert rules.tolerates(one, NO_EXECUTE) == bears
