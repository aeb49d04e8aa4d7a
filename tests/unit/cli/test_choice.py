"""Which rows lists show, in which order and in how much space."""

from __future__ import annotations

import pytest

from lockstep.cli import kinds
from lockstep.cli.choice import Choice
from lockstep.cli.failure import BadInput
from lockstep.cli.views.table import Column, Table, fit, plain, table

JOBS = table(
    ("Name", "Phase", Column("Restarts", number=True), "Age", Column("Why", text=True)),
    [
        ("a", "Running", 2, "1m20s", ""),
        ("b", "Failed", 10, "5s", "exit code 1: " + "x" * 200),
        ("c", "Pending", 0, "2h", "needs 8 GPUs"),
    ],
)


def names(shown: Table) -> str:
    return "".join(row[0] for row in shown.rows)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(), "abc"),
        (Choice(phase="running,FAILED"), "ab"),
        (Choice(sort="age"), "bac"),
        (Choice(sort="Restarts"), "cab"),
        (Choice(sort="why"), "bca"),
        (Choice(sort="age", reverse=True), "cab"),
    ],
)
def test_rows_are_chosen_and_ordered(choice: Choice, expected: str) -> None:
    assert names(choice.of_rows(JOBS)) == expected


@pytest.mark.parametrize(
    ("choice", "said"),
    [(Choice(sort="colour"), "there is no column 'colour'"), (Choice(phase="x"), "--phase")],
)
def test_a_column_that_is_not_there_is_an_error(choice: Choice, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        choice.of_rows(table(("Name",), [("a",)]))
    assert said in str(caught.value)


@pytest.mark.parametrize("width", range(10, 260, 7))
def test_a_row_takes_one_line_at_any_width(width: int) -> None:
    lines = plain(fit(JOBS, width)).splitlines()
    assert len(lines) == 1 + len(JOBS.rows)
    assert all(len(line) <= max(width, len("NAME   RUNNING")) for line in lines)
    assert all(line.split()[0] == name for line, name in zip(lines[1:], "abc", strict=True))


def test_what_fits_is_not_cut() -> None:
    assert fit(JOBS, 300) == JOBS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "job"),
        (["pods"], "pod"),
        (["q"], "queue"),
        (["digits"], ["job/digits"]),
        (["pod", "a", "b"], ["pod/a", "pod/b"]),
        (["a", "pod/b"], ["job/a", "pod/b"]),
        (["pods", "pod/b"], ["pod/b"]),
    ],
)
def test_words_name_a_kind_or_objects(words: list[str], expected: str | list[str]) -> None:
    found = kinds.wanted(words)
    told = found[0] if isinstance(found, tuple) else [str(one) for one in found]
    assert told == expected


@pytest.mark.parametrize("words", [["pods"], ["a", "b"]])
def test_one_object_is_one(words: list[str]) -> None:
    with pytest.raises(ValueError, match="name "):
        kinds.single(words)
