"""Who keeps the others waiting, from what is known of each rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs
from tests.support.derived_dumps import derived
from tests.support.stuck_worlds import KINDS, NOBODY, Hang, Kind, hang
from tests.support.training_programs import Layout

from lockstep.api.rank_evidence import GroupSeen, RankSeen, Work, members
from lockstep.health.core.culprits import culprits
from lockstep.health.core.hang import outliers, rank_seen, verdict
from lockstep.health.core.traces import NoDump, ranges
from lockstep.health.dump_child import parse, rank_in

LAYOUTS = (Layout(4, 3, 1), Layout(4, 4, 2, 4), Layout(8, 3, 2), Layout(4, 4, 4))


def known(stuck: Hang, dumps: Mapping[int, RankSeen]) -> dict[int, RankSeen]:
    """Return *dumps* with what the launchers say besides."""
    found = dict(dumps)
    for rank, said in stuck.answers.items():
        found[rank] = structs.replace(found.get(rank, RankSeen(rank=rank)), **said)
    return found


def named(stuck: Hang) -> set[int]:
    dumps = {rank: rank_seen(dump, rank) for rank, dump in stuck.dumps.items()}
    return set(verdict(known(stuck, dumps), stuck.layout.world).place.ranks)


def culprits_of(stuck: Hang) -> set[int]:
    return set() if stuck.kind in NOBODY else set(stuck.culprits)


@pytest.mark.parametrize("kind", KINDS)
def test_the_culprit_is_named(kind: Kind) -> None:
    right = 0
    for seed in range(8):
        stuck = hang(seed, LAYOUTS[seed % 4], kind, lost=0.0)
        found, wanted = named(stuck), culprits_of(stuck)
        assert found <= wanted, f"seed {seed}: {stuck.layout} {stuck.culprits} {found}"
        right += bool(found) == bool(wanted)
    assert right >= 7


def test_with_dumps_lost_and_rings_wrapped_no_other_is_named() -> None:
    right = 0
    for seed in range(92):
        stuck = hang(seed, LAYOUTS[seed % 4], KINDS[seed % len(KINDS)])
        found, wanted = named(stuck), culprits_of(stuck)
        assert found <= wanted, f"seed {seed}: {stuck.kind} {stuck.culprits} {found}"
        right += bool(found) == bool(wanted)
    assert right >= 88


@pytest.mark.parametrize("several", [1, 3])
def test_sets_as_they_are_found_name_the_culprit_or_none(several: int) -> None:
    """In all forms: of torch 2.4 to 2.13, NCCL's and gloo's, cut, renamed, without names.

    With several changes at once too: a rank missing, one cut, clocks off, all in one set.
    """
    many, right, wrong = (184 if several == 1 else 92), 0, []
    for seed in range(many):
        stuck = hang(seed, LAYOUTS[seed % 4], KINDS[seed % len(KINDS)], lost=0.0)
        if several > 1 and stuck.kind in NOBODY:
            continue
        folder = derived(stuck, seed, several)
        dumps = {}
        for name, data in folder.files.items():
            rank = rank_in(name)
            assert rank is not None
            try:
                dumps[rank] = rank_seen(parse(data), rank)
            except NoDump:
                dumps[rank] = RankSeen(rank=rank)
        found = set(verdict(known(stuck, dumps), folder.world).place.ranks)
        right += bool(found) and found <= culprits_of(stuck)
        if not found <= culprits_of(stuck):
            wrong.append((seed, stuck.kind, folder.form, folder.changes, stuck.culprits, found))
    assert len(wrong) <= many * 0.02, wrong
    assert right >= many * 0.75


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


def test_groups_without_named_members_hold_the_ranks_seen_in_them() -> None:
    """As gloo leaves them, which names no members."""
    absent = seen(2, [GroupSeen("0", 1, 1)], [])
    assert culprits({0: waits(0), 1: waits(1), 2: absent}, 3).ranks == (2,)


def test_a_stopped_rank_is_named_without_members_in_any_dump() -> None:
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


def test_a_rank_past_the_others_wait_called_another_collective() -> None:
    """As gloo does with sums of different lengths: the shorter one ends."""
    ahead = seen(2, [GroupSeen("0", 3, 2)], [Work("0", 3, "all_reduce")])
    found = verdict({**{r: waits(r) for r in (0, 1, 3)}, 2: ahead}, 4)
    assert (found.class_, found.place.ranks) == ("user", [2])
    on_device = {
        r: seen(r, [GroupSeen("0", 2, 1)], [Work("0", 2, "all_reduce", started=True)])
        for r in (0, 1, 3)
    }
    assert culprits({**on_device, 2: ahead}, 4).ranks == ()


def test_ranks_that_only_wait_are_never_placed() -> None:
    found = verdict({r: waits(r) for r in range(3)}, 5)
    assert (found.place.ranks, found.class_) == ([], "unknown")
    assert "one of ranks 3-4" in found.cause


def test_a_rank_in_an_unrecorded_receive_is_no_culprit() -> None:
    """Its stack tells: gloo's recorder has no sends and receives."""
    idle = [GroupSeen("0", 1, 1)]
    receives = seen(0, idle, [], answers="all", at="train.py:4 in main", inside="recv")
    stands = seen(1, idle, [], answers="all", at="train.py:9 in main")
    found = verdict({0: receives, 1: stands, 2: waits(2), 3: waits(3)}, 4)
    assert found.place.ranks == [1]


def test_who_began_less_than_its_like_breaks_the_circle() -> None:
    """As gloo recorded it where rank 3 left out a collective of its pair."""
    pair = {0: ("a", 4), 1: ("a", 4), 2: ("b", 4), 3: ("b", 3)}
    all_ = {r: GroupSeen("0", 3 if r == 2 else 4, 3) for r in range(4)}
    works = {r: [Work("b" if r == 2 else "0", 4, "all_reduce")] for r in range(4)}
    ranks = {r: seen(r, [all_[r], GroupSeen(*pair[r], 3)], works[r]) for r in range(4)}
    assert culprits(ranks, 4).ranks == (3,)


def test_a_unique_stack_is_suspect_when_no_rank_waits() -> None:
    alike = [RankSeen(rank=r, frames="a") for r in range(4)]
    assert outliers([*alike, RankSeen(rank=4, frames="b")]) == (4,)
    assert outliers(alike) == ()


def test_one_of_a_hundred_thousand_ranks_is_named() -> None:
    work = [Work("0", 2, "all_reduce")]
    all_ = "0-99999"
    ranks = {r: seen(r, [GroupSeen("0", 2, 1, all_)], work) for r in range(100_000) if r != 77}
    ranks[77] = seen(77, [GroupSeen("0", 1, 1, all_)], [])
    assert verdict(ranks, 100_000).place.ranks == [77]


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
