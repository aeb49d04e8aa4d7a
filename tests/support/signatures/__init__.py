"""Log lines of public issues and vendors' tables, each with the cause that its signature names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """A row of ``samples.tsv``."""

    where: str
    """``kernel`` or ``rank``: who writes the line."""
    source: str
    """Where the line, or the meaning of it, is published."""
    cause: str
    line: str


_ROWS = (Path(__file__).parent / "samples.tsv").read_text().splitlines()[1:]
SAMPLES = tuple(Sample(*row.split("\t")) for row in _ROWS)
