"""What ``top -o json`` prints: numbers, under keys that stay."""

from __future__ import annotations

import pytest

from lockstep.cli.views.devices import GPU_COLUMNS
from lockstep.cli.views.ranks import COLUMNS
from lockstep.cli.views.records import key, records
from lockstep.cli.views.table import Column, table


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (None, None),
        (7, 7),
        ("0.0123", 0.0123),
        ("3/8", {"used": 3, "of": 8}),
        ("1.5/64", {"used": 1.5, "of": 64}),
        ("2.0/80Gi", {"used": 2 << 30, "of": 80 << 30}),
        ("1.5Gi/2.0Gi", {"used": 3 << 29, "of": 2 << 30}),
        ("512/-Mi", {"used": 512 << 20, "of": None}),
        ("30/50%", {"used": 30, "of": 50}),
    ],
)
def test_numbers_of_a_table_are_numbers_for_programs(cell: object, value: object) -> None:
    assert records(table([Column("GPUs used", number=True)], [(cell,)])) == [{"gpusUsed": value}]


def test_a_name_of_digits_stays_a_text() -> None:
    assert records(table(["Pod"], [("17",)])) == [{"pod": "17"}]


def test_keys_are_words_without_units_and_spaces() -> None:
    names = [one if isinstance(one, str) else one.name for one in (*COLUMNS, *GPU_COLUMNS)]
    assert " ".join(key(name) for name in names) == (
        "pod local node state steps stepSeconds p99Seconds dataPercent gpuGb lastStepSecondsAgo "
        "process node gpu model gpuPercent smPercent tensorPercent memory watts celsius pod "
        "trouble uuid"
    )
