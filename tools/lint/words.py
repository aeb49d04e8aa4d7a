"""Words that leave the subject of a sentence open, in ``src`` and ``docs``.

"Nobody is told" hides who acts; "no event tells the user" says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SUFFIXES: Final = frozenset({".py", ".md", ".js", ".css", ".html", ".yaml", ".toml", ".txt"})
_GAP: Final = r"\s+(?:[#*]\s+)?"
"""Between two words of a phrase, which may go on in the next line of a comment."""
OPEN: Final = re.compile(
    r"(?<!user: )\b(?:[Nn]obody|[Ww]hoever|[Ww]hatever|[Ss]omebody|[Aa]nybody|[Ww]homever)\b"
    rf"|\b[Ww]hat{_GAP}is{_GAP}none\b|\b[Tt]hat{_GAP}there{_GAP}is,"
)
DATA: Final = (
    "src/lockstep/apiserver/data/",
    "src/lockstep/console/page/vendor/",
)
"""Text of others, kept as they wrote it."""


def open_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and word of each open word."""
    for found in OPEN.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found.group().split())


def faults(root: Path) -> list[str]:
    """Return a line for each open word."""
    paths = [
        path
        for folder in ("src", "docs")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES and path.is_file()
    ]
    return [
        f"{name}:{line}: '{word}': name who or what acts"
        for path in [root / "README.md", *paths]
        if not (name := path.relative_to(root).as_posix()).startswith(DATA)
        for line, word in open_words(path.read_text())
    ]
