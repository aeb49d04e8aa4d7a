"""Rules that hold for all tests: short names, and no test takes anything from another."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
FILES = {path.relative_to(TESTS).as_posix(): path.read_text() for path in TESTS.rglob("*.py")}
MOST_WORDS = 10
_NAME = re.compile(r"^\s*(?:async )?def test_(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(tests\.(?!support\b)\w[\w.]*)", re.MULTILINE)


def long_names(text: str) -> list[str]:
    """Return the test functions of a file whose names have too many words."""
    return [name for name in _NAME.findall(text) if len(name.split("_")) > MOST_WORDS]


def borrowed(text: str) -> list[str]:
    """Return the modules of tests, outside the support package, that a file imports."""
    return _IMPORT.findall(text)


def test_names_have_at_most_ten_words() -> None:
    found = {path: names for path, text in FILES.items() if (names := long_names(text))}
    assert not found, "Shorten these names, so that each says its rule in ten words at most."


def test_support_is_all_that_tests_import() -> None:
    found = {path: modules for path, text in FILES.items() if (modules := borrowed(text))}
    assert not found, "Move what these files share to tests/support."


def test_the_rules_find_what_breaks_them() -> None:
    assert long_names("async def test_a_b_c_d_e_f_g_h_i_j_k():") == ["a_b_c_d_e_f_g_h_i_j_k"]
    assert long_names("    def test_a_b_c_d_e_f_g_h_i_j(self):") == []
    assert borrowed("from tests.unit.jobs.test_x import y") == ["tests.unit.jobs.test_x"]
    assert borrowed("    import tests.e2e.test_x") == ["tests.e2e.test_x"]
    assert borrowed("from tests.support.jobs import y\nfrom tests import support") == []
