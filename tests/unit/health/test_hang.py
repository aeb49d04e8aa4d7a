"""Who keeps the others waiting, from what is known of each rank."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.stuck_worlds import KINDS, Hang, Kind, hang

from lockstep.api.rank_evidence import GroupSeen, RankSeen, Work, members
from lockstep.health.core.culprits import Culprits, culprits
from lockstep.health.core.hang import outliers, rank_seen, verdict
from lockstep.health.core.traces import NoDump, ranges


def told(stuck: Hang) -> Culprits:
    seen = {rank: rank_seen(dump, rank) for rank, dump in stuck.dumps.items()}
    return culprits(seen, stuck.layout.world)


@pytest.mark.parametrize("kind", KINDS)
def test_the_culprit_is_named(kind: Kind) -> None:
    for seed in range(12):
        stuck = hang(seed, kind=kind, lost=0.0)
        assert told(stuck).ranks == (stuck.culprit,), f"seed {seed}: {stuck.layout} {told(stuck)}"


def test_with_dumps_lost_and_rings_wrapped_no_other_is_named() -> None:
    named = 0
    for seed in range(100):
        stuck = hang(seed)
        found = told(stuck)
        assert found.ranks in ((), (stuck.culprit,)), f"seed {seed}: {stuck.kind} {found}"
        assert found.ranks or found.missing or found.candidates, f"seed {seed}: {found}"
        named += bool(found.ranks)
    assert named >= 95


def test_what_cannot_be_told_names_what_is_missing() -> None:
    everybody = {
        r: seen(r, [GroupSeen("0", 9, 8, "0-7")], [Work("0", 9, "barrier")]) for r in range(6)
    }
    found = verdict(everybody, 8)
    assert (found.class_, found.confidence) == ("unknown", 0.0)
    assert "missing: dumps of ranks 6-7" in found.cause


def seen(rank: int, groups: list[GroupSeen], waiting: list[Work], **more: Any) -> RankSeen:
    return RankSeen(rank=rank, groups=groups, waiting=waiting, **more)


def waits(rank: int, **more: Any) -> RankSeen:
    """Return a rank that waits in the second collective of all."""
    return seen(rank, [GroupSeen("0", 2, 1)], [Work("0", 2, "all_reduce")], **more)


@pytest.mark.parametrize(
    ("answers", "at", "class_", "words"),
    [
        ("stopped", "", "platform", "is stopped"),
        ("trace", "train.py:7 in work", "software", "holds the interpreter's lock"),
        ("all", "dataloader.py:1 in _try_get_data", "storage", "waits for data"),
        ("all", "train.py:9 in save", "software", "has not come, at train.py:9 in save"),
    ],
)
def test_the_verdict_says_what_keeps_the_culprit(
    answers: Any, at: str, class_: str, words: str
) -> None:
    culprit = seen(3, [GroupSeen("0", 1, 1)], [], answers=answers, at=at, node="n3")
    found = verdict({**{r: waits(r, answers="all") for r in range(3)}, 3: culprit}, 4)
    assert (found.class_, found.place.ranks, found.place.nodes) == (class_, [3], ["n3"])
    assert words in found.cause
    assert found.confidence >= 0.8


def test_groups_without_named_members_are_those_who_were_seen_in_them() -> None:
    """As gloo leaves them, which names no members."""
    absent = seen(2, [GroupSeen("0", 1, 1)], [])
    assert culprits({0: waits(0), 1: waits(1), 2: absent}, 3).ranks == (2,)


def test_a_rank_that_is_stopped_is_named_though_no_dump_names_the_members() -> None:
    stopped = RankSeen(rank=2, answers="stopped")
    found = verdict({**{r: waits(r, answers="all") for r in (0, 1, 3)}, 2: stopped}, 4)
    assert (found.class_, found.place.ranks) == ("platform", [2])


def test_a_rank_behind_on_its_device_is_named() -> None:
    behind = seen(1, [GroupSeen("0", 2, 1)], [Work("0", 2, "all_reduce", started=False)])
    others = {
        r: seen(r, [GroupSeen("0", 2, 1)], [Work("0", 2, "all_reduce", started=True)])
        for r in (0, 2)
    }
    found = culprits({**others, 1: behind}, 3)
    assert (found.ranks, found.how) == ((1,), "device")


def test_all_inside_and_none_ahead_cannot_be_told() -> None:
    found = verdict({r: waits(r) for r in range(3)}, 3)
    assert found.class_ == "network"
    assert "cannot tell" in found.cause and "counters of the links" in found.cause


def test_one_that_went_past_where_the_others_wait_called_something_else() -> None:
    """As gloo does with sums of different lengths: the shorter one ends."""
    ahead = seen(2, [GroupSeen("0", 3, 2)], [Work("0", 3, "all_reduce")])
    found = verdict({**{r: waits(r) for r in (0, 1, 3)}, 2: ahead}, 4)
    assert (found.class_, found.place.ranks) == ("user", [2])
    on_device = {
        r: seen(r, [GroupSeen("0", 2, 1)], [Work("0", 2, "all_reduce", started=True)])
        for r in (0, 1, 3)
    }
    assert culprits({**on_device, 2: ahead}, 4).ranks == ()


def test_a_stack_of_its_own_is_suspect_where_no_rank_waits() -> None:
    alike = [RankSeen(rank=r, frames="a") for r in range(4)]
    assert outliers([*alike, RankSeen(rank=4, frames="b")]) == (4,)
    assert outliers(alike) == ()


@pytest.mark.parametrize("dump", [None, [], {}, {"entries": 3}, "x"])
def test_what_is_no_dump_is_refused(dump: object) -> None:
    with pytest.raises(NoDump):
        rank_seen(dump, 0)


@pytest.mark.parametrize(
    "entry",
    [{}, {"collective_seq_id": "x"}, {"process_group": 3}, {"profiling_name": None}, 7],
)
def test_odd_entries_are_borne(entry: Any) -> None:
    odd = {"pg_status": {"0": 3, "1": {}}, "pg_config": {"0": {"ranks": "[1"}}}
    assert rank_seen({"entries": [entry], **odd}, 4).rank == 4


@pytest.mark.parametrize(("ranks", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 9], "0-2,9")])
def test_ranks_are_written_as_ranges(ranks: list[int], text: str) -> None:
    assert ranges(ranks) == text
    assert members(text) == set(ranks)
