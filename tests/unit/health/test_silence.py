"""Which nodes are lost because they stopped renewing their leases."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.api.core import Lease, Node
from lockstep.api.names import UNREACHABLE_TAINT
from lockstep.api.wire import convert
from lockstep.health.core.lifecycle import is_lost
from lockstep.health.core.silence import BREAK, SILENT_AFTER, Renewals, judge

RENEWS = 10


def lease(name: str, renewed: object, seconds: int = 40) -> Lease:
    spec = {"renewTime": str(renewed), "leaseDurationSeconds": seconds}
    return convert({"metadata": {"name": name}, "spec": spec}, Lease)


def node(name: str, ready: str = "True", *, tainted: bool = False) -> Node:
    taints = [{"key": UNREACHABLE_TAINT, "effect": "NoSchedule"}] if tainted else []
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return convert({"metadata": {"name": name}, "spec": {"taints": taints}, "status": status}, Node)


def at(until: int, stops: dict[str, int], away: Iterable[int] = ()) -> Renewals:
    """Return what is known at second *until* of nodes that renew up to a second of their own.

    In the seconds *away* the API server does not answer.
    """
    seen = Renewals()
    for second in range(until + 1):
        if second in away:
            continue
        for name, stop in stops.items():
            seen.hear(lease(name, min(second, stop) // RENEWS), second)
        seen.answered(second)
    return seen


@pytest.mark.parametrize(
    ("until", "away", "silent"),
    [
        (34, (), set()),
        (35, (), {"c"}),
        (64, range(20, 60), set()),  # the server was away, and all were silent
        (84, range(20, 60), set()),
        (85, range(20, 60), {"c"}),  # each node had its whole time after the outage
        (35, range(20, 25), {"c"}),  # too short for an outage
    ],
)
def test_silence_counts_while_the_server_answers(until: int, away: range, silent: set[str]) -> None:
    seen = at(until, {"a": 1000, "b": 1000, "c": 15}, away)
    assert seen.silent(until) == silent


def test_longer_lease_may_be_renewed_less_often() -> None:
    seen = Renewals()
    seen.answered(0)
    seen.hear(lease("n", 1, seconds=80), 0)
    assert seen.silent(2 * SILENT_AFTER - 1) == set()
    assert seen.silent(2 * SILENT_AFTER) == {"n"}


def test_node_is_back_only_once_it_renews() -> None:
    seen = Renewals()
    seen.hear(lease("n", 1), 0)
    seen.answered(0)
    assert seen.renewed(1) == set(), "a process that has just begun knows nothing of it"
    seen.hear(lease("n", 2), 5)
    assert seen.renewed(6) == {"n"}
    assert seen.renewed(5 + SILENT_AFTER) == set()
    seen.answered(7 + BREAK)
    assert seen.renewed(8 + BREAK) == set()


def test_quietest_node_is_asked_and_deleted_ones_forgotten() -> None:
    seen = at(30, {"a": 1000, "b": 5})
    assert seen.quietest() == "b"
    seen.forget("b")
    assert seen.quietest() == "a"
    assert seen.silent(1000) == {"a"}
    seen.forget("a")
    assert seen.quietest() == ""


@pytest.mark.parametrize(
    ("nodes", "silent", "lost", "held"),
    [
        ([node("a"), node("b"), node("c")], "c", ["c"], False),
        ([node("a"), node("b"), node("c")], "bc", [], True),
        ([node("a"), node("b")], "b", ["b"], False),
        ([node("a")], "a", [], True),
        # Kubernetes calls b not Ready, which says all; c counts among the others.
        ([node("a"), node("b", "Unknown"), node("c")], "bc", ["c"], False),
        ([node("a"), node("b", tainted=True), node("c")], "b", [], False),
        ([node("a"), node("b", tainted=True), node("c")], "bc", [], True),
    ],
)
def test_most_nodes_are_never_lost_at_once(
    nodes: list[Node], silent: str, lost: list[str], held: bool
) -> None:
    found = judge(nodes, frozenset(silent), frozenset())
    assert (list(found.lost), bool(found.held)) == (lost, held)


@given(st.integers(1, 40), st.data())
def test_at_most_half_of_the_ready_nodes_are_lost(size: int, data: st.DataObject) -> None:
    nodes = [node(str(n), tainted=data.draw(st.booleans())) for n in range(size)]
    silent = data.draw(st.frozensets(st.sampled_from([one.metadata.name for one in nodes])))
    found = judge(nodes, silent, frozenset())
    assert 2 * len(found.lost) <= size
    assert set(found.lost) <= silent


def test_renewing_node_loses_the_taint() -> None:
    nodes = [node("a", tainted=True), node("b", tainted=True), node("c")]
    assert judge(nodes, frozenset("b"), frozenset("ac")).back == ("a",)


@pytest.mark.parametrize(
    ("there", "lost"),
    [(node("n"), False), (node("n", "Unknown"), False), (node("n", tainted=True), True)],
)
def test_tainted_node_is_lost_to_jobs(there: Node, lost: bool) -> None:
    assert is_lost(there) == lost
