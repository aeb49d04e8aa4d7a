"""The pages for contributors name files and folders that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
PLACEHOLDERS = re.compile(r"NAME|KIND|<")
"""Words in a path that a contributor fills in."""
QUOTED = re.compile(r"`([\w./-]+/[\w./-]*)`")
BASES = (ROOT, ROOT / "src" / "lockstep")


def named(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return [path for path in QUOTED.findall(text) if not PLACEHOLDERS.search(path)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_path_that_a_page_names_exists(page: Path) -> None:
    outside = (
        "amd.com/",
        "/dev/",
        "core/",
        "process/",
        "simulated/",
        "remediation/",
        "frameworks/",
    )
    missing = [
        path
        for path in named(page)
        if not path.startswith(outside) and not any((base / path).exists() for base in BASES)
    ]
    assert missing == []


def test_architecture_has_a_paragraph_for_each_folder() -> None:
    text = (ROOT / "docs" / "contributing" / "architecture.md").read_text()
    folders = {path.parent.name for path in (ROOT / "src" / "lockstep").glob("*/__init__.py")}
    assert {one for one in folders if f"**`{one}`**" not in text} == set()
