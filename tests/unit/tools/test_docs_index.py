"""The documentation's index: every page is on it, and in the site's navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_listed(page: str) -> None:
    assert f"]({page})" in (DOCS / "index.md").read_text()
    assert f": {page}\n" in (DOCS.parent / "mkdocs.yml").read_text()


def test_every_link_of_the_index_leads_somewhere() -> None:
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", (DOCS / "index.md").read_text()))
    assert linked <= set(PAGES)
