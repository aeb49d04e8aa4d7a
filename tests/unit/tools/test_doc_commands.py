"""The matcher that holds a page's output against the real one."""

from __future__ import annotations

import pytest
from tests.support.doc_commands import DocCommand


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        (["a", "b"], "a\nb\n", True),
        (["a", "b"], "a\nc\n", False),
        (["a"], "a\nb\n", False),
        (["a", "..."], "a\nb\nc\n", True),
        (["...", "c"], "a\nb\nc\n", True),
        (["NAME ... USED ..."], "NAME   PARENT   USED   AGE\n", True),
        (["NAME ... USED ..."], "NAME   PARENT   AGE\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_dots_stand_for_text_that_varies(shown: list[str], printed: str, fits: bool) -> None:
    assert DocCommand(["x"], shown).shown(printed) is fits
