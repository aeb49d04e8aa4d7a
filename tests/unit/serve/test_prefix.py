"""Replicas by what they hold of a prompt, by session, and by what matches."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.serve.core.choice import by_prefix, by_session
from lockstep.serve.core.prefix import BLOCK, Prefixes, blocks, prompt


@dataclass
class Replica:
    uid: str
    in_flight: int = 0


def text(*words: str) -> str:
    return "".join(word * BLOCK for word in words)


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_blocks_are_alike_as_far_as_the_prompts_are(left: list[str], right: list[str]) -> None:
    one, other = blocks(text(*left)), blocks(text(*right))
    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        assert (a == b) is (place < common)


def test_a_prompt_goes_where_most_of_it_is_held() -> None:
    prefixes, there = Prefixes(), [Replica("a"), Replica("b")]
    prefixes.took("b", blocks(text("x", "y")))
    assert by_prefix(there, blocks(text("x", "y", "z")), prefixes, 0) is there[1]
    assert by_prefix(there, blocks(text("q")), prefixes, 0) is there[0]


def test_a_busy_replica_loses_even_requests_whose_prefix_it_holds() -> None:
    prefixes, there = Prefixes(), [Replica("a"), Replica("b", in_flight=9)]
    prefixes.took("b", blocks(text("x", "y")))
    assert by_prefix(there, blocks(text("x", "y")), prefixes, 0) is there[0]
    assert by_prefix([Replica("b", in_flight=1)], blocks(text("x")), prefixes, 1) is None


def test_the_oldest_blocks_are_forgotten() -> None:
    prefixes = Prefixes(held=2)
    prefixes.took("a", blocks(text("x", "y")))
    prefixes.took("a", blocks(text("q")))
    assert prefixes.held("a", blocks(text("x", "y"))) == 1
    prefixes.forget("a")
    assert prefixes.held("a", blocks(text("q"))) == 0


@given(st.text(max_size=8), st.integers(1, 6))
def test_sessions_move_only_to_a_replica_that_came(session: str, count: int) -> None:
    there = [Replica(f"r{number}") for number in range(count)]
    before, new = by_session(there, session, 0), Replica("new")
    assert by_session([*there, new], session, 0) in (before, new)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"prompt": "hello"}, "hello"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "user:hi\n"),
        ([], ""),
        (None, ""),
    ],
)
def test_the_prompt_is_what_the_model_reads(body: object, expected: str) -> None:
    assert prompt(body) == expected
