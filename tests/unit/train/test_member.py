"""A launcher follows the generations of the world, and only ever forward."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.train.member import Exit, Member, Start, Stop, Tell

ENDED = {"rank": 0, "at": 1.0, "signal": 9}


def world(generation: int, phase: str) -> dict[str, Any]:
    return {"generation": generation, "phase": phase}


def running() -> Member:
    member = Member()
    assert member.see(world(1, "Gather")) == [Tell()]
    assert member.see(world(1, "Run")) == [Start(world(1, "Run")), Tell()]
    return member


def test_it_runs_until_all_may_leave() -> None:
    member = running()
    assert member.see(world(1, "Run")) == []
    assert member.gone() == [Tell()]
    assert member.state == "Done"
    assert member.see(world(1, "Leave")) == [Exit(0)]


def test_a_failed_rank_is_reported_immediately_and_the_others_end() -> None:
    member = running()
    assert member.failed(ENDED) == [Tell(), Stop()]
    assert (member.state, member.ended) == ("Failed", ENDED)
    assert member.failed({**ENDED, "rank": 1}) == []
    assert member.ended == ENDED


@pytest.mark.parametrize("fails", [True, False])
def test_it_is_ready_for_the_next_generation_without_ranks(fails: bool) -> None:
    member = running()
    if fails:
        member.failed(ENDED)
    assert member.see(world(2, "Gather")) == [Stop()]
    assert member.state == "Stopping"
    assert member.gone() == [Tell()]
    assert (member.state, member.generation, member.ended) == ("Ready", 2, None)
    assert member.see(world(2, "Run"))[0] == Start(world(2, "Run"))


def test_ranks_that_are_gone_first_make_it_ready_at_once() -> None:
    member = running()
    member.failed(ENDED)
    assert member.gone() == []
    assert member.see(world(2, "Gather")) == [Tell()]
    assert member.state == "Ready"


def test_an_older_world_is_passed_over() -> None:
    member = running()
    member.see(world(3, "Gather"))
    member.gone()
    assert member.see(world(2, "Run")) == []
    assert (member.state, member.generation) == ("Ready", 3)


@pytest.mark.parametrize("phase", ["Run", "Leave"])
def test_a_launcher_that_missed_the_gathering_says_so_and_waits(phase: str) -> None:
    member = Member()
    assert member.see(world(4, phase)) == [Tell(), Stop()]
    assert member.state == "Failed"
    assert member.ended is not None
    assert member.see(world(5, "Gather")) == [Tell()]


def test_it_does_not_leave_before_its_ranks_are_done() -> None:
    member = running()
    assert member.see(world(1, "Leave")) == []
