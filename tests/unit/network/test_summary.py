"""From nodes' answers to one verdict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lockstep.api.network import Measured, NodeAnswer
from lockstep.devices.network.core.summary import best, summed_up

NAMES = ["a", "b", "c", "d"]


def answers(slow: str = "", **problems: str) -> dict[str, NodeAnswer]:
    found = {}
    for number, node in enumerate(NAMES):
        measured = [
            Measured(
                peer=peer,
                rail="rail0",
                rate=5.0 if slow in (node, peer) else 50.0,
                back=5.0 if slow in (node, peer) else 50.0,
                problem=problems.get(f"{node}{peer}", ""),
            )
            for peer in NAMES[number + 1 :]
        ]
        found[node] = NodeAnswer(state="done", measured=measured)
    return found


def test_all_well_is_healthy() -> None:
    checks, verdict = summed_up(NAMES, answers())
    assert verdict.kind == "healthy"
    assert [one.state for one in checks] == ["ok"]


def test_a_silent_node_is_named_and_not_blamed_for_rates() -> None:
    said = answers(slow="d")
    said["d"] = NodeAnswer(state="ready")
    checks, verdict = summed_up(NAMES, said)
    assert (verdict.kind, verdict.place) == ("silent", "d")
    assert [(one.state, one.place) for one in checks] == [("unknown", "d")]


def test_what_is_slow_once_alone_is_not_slow() -> None:
    once, later = answers(slow="c"), answers(slow="b")
    assert summed_up(NAMES, once)[1].place == "c/rail0"
    assert summed_up(NAMES, best(once, later))[1].kind == "pair"
    assert summed_up(NAMES, best(best(once, later), answers()))[1].kind == "healthy"


def test_what_is_slow_each_time_is_named() -> None:
    again = best(answers(slow="c"), answers(slow="c"))
    assert summed_up(NAMES, again)[1].place == "c/rail0"


def test_a_path_that_carries_nothing_is_named() -> None:
    said = answers(ab="10.0.0.1 to 10.0.0.2: timed out")
    row = said["a"].measured[0]
    said["a"].measured[0] = Measured(peer=row.peer, rail=row.rail, problem=row.problem)
    checks, verdict = summed_up(NAMES, said)
    assert (verdict.kind, verdict.place) == ("pair", "a,b/rail0")
    assert checks[0].state == "fail"


def crossing(rate: float, slow: str = "", problem: str = "") -> dict[str, NodeAnswer]:
    """Return sound rails of 50 Gb/s, and between rail0 and rail1 what *rate* says."""
    found = {}
    for number, node in enumerate(NAMES):
        measured = []
        for peer in NAMES[number + 1 :]:
            for one, other in (("rail0", ""), ("rail1", ""), ("rail0", "rail1")):
                ill = slow in (f"{node}/{one}", f"{peer}/{other or one}")
                reached = 5.0 if ill else rate if other else 50.0
                flow = Measured(peer=peer, rail=one, rate=reached, back=reached, to_rail=other)
                measured.append(replace(flow, problem=problem) if other else flow)
        found[node] = NodeAnswer(state="done", measured=measured)
    return found


@pytest.mark.parametrize(
    ("answered", "told"),
    [
        (crossing(50.0), []),
        (crossing(20.0), ["6 of 6 pairs are slow or closed: a/rail0 to b/rail1: 20.00 Gb/s"]),
        (crossing(0.0, problem="no route"), ["a/rail0 to b/rail1: no route"]),
        (crossing(50.0, slow="b/rail1"), []),
    ],
    ids=["as fast as the rails", "slow spines", "no route", "a NIC that its own rail blames"],
)
def test_what_is_slow_between_rails_is_told_once(
    answered: dict[str, NodeAnswer], told: list[str]
) -> None:
    checks, _ = summed_up(NAMES, answered)
    found = [one for one in checks if one.place == "rail0,rail1"]
    assert len(found) == len(told)
    assert all(words in one.evidence for words, one in zip(told, found, strict=True))
    assert [one.place for one in checks if one.state == "fail" and one not in found] == (
        ["b/rail1"] if answered == crossing(50.0, slow="b/rail1") else []
    )
