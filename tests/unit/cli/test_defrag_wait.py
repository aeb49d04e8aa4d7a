"""What is told while a scheduler says nothing of the moves that it was asked for."""

from __future__ import annotations

import pytest

from lockstep.cli.defrag import Silence


@pytest.mark.parametrize(
    ("passed", "answered", "told"),
    [
        (4.9, False, ""),
        (5.0, False, "no scheduler has answered for 5s; waiting 1m at most"),
        (59.0, True, ""),
        (60.0, True, "no news for 1m: pods may take their time to end"),
    ],
)
def test_silence_is_told_once(passed: float, answered: bool, told: str) -> None:
    silence = Silence(100.0)
    said = silence.words(100.0 + passed, 60.0, answered=answered)
    assert said.startswith(told)
    assert bool(said) == bool(told)
    if told:
        assert not silence.words(100.0 + passed + 1, 60.0, answered=answered)


def test_after_news_it_is_counted_anew() -> None:
    silence = Silence(0.0)
    assert silence.words(10.0, 60.0, answered=False)
    silence.heard(10.0)
    assert not silence.words(69.0, 60.0, answered=True)
    assert silence.words(70.0, 60.0, answered=True)


def test_who_waits_for_less_is_told_before_the_end() -> None:
    assert Silence(0.0).words(1.0, 1.0, answered=False)
