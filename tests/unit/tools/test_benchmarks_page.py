"""The page of the benchmarks names those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from bench.__main__ import benchmarks

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"


def test_every_benchmark_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(benchmarks())
