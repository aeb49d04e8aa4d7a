"""Which failed tests run again alone."""

from __future__ import annotations

import json

import pytest
from tools.alone import MOST, few


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([], []),
        (["tests/a.py::b"], ["tests/a.py::b"]),
        # xdist adds the group that a test ran in.
        (["tests/a.py::b[c@d]@real control plane"], ["tests/a.py::b[c@d]"]),
        # A file that does not import fails alone as well.
        (["tests/a.py", "tests/b.py::c"], []),
        ([f"tests/a.py::b{i}" for i in range(MOST + 1)], []),
    ],
)
def test_few_failed_tests_run_again(failed: list[str], again: list[str]) -> None:
    assert few(json.dumps(dict.fromkeys(failed, True))) == again
