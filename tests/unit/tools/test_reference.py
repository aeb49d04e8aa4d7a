"""The reference of all commands says what the program has."""

from __future__ import annotations

from tools.reference.__main__ import PAGE, page

from lockstep.cli.main import ENTRIES


def test_the_reference_is_what_the_program_says() -> None:
    assert page() == PAGE.read_text(), "run `python -m tools.reference`"


def test_every_command_is_in_it() -> None:
    text = PAGE.read_text()
    assert [e.name for e in ENTRIES if f"### lockstep {e.name}\n" not in text] == []
