from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.cli.up.logfile import LogFile, last_lines


def test_full_files_move_on_and_the_oldest_goes(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "part.log", limit=10, kept=2)
    for number in range(8):
        log.write(f"line {number}\n".encode())
    log.close()
    assert (tmp_path / "part.log").read_bytes() == b"line 7\n"
    assert (tmp_path / "part.log.1").read_bytes() == b"line 6\n"
    assert (tmp_path / "part.log.2").read_bytes() == b"line 5\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_new_run_appends_to_the_log_of_the_last(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        log = LogFile(tmp_path / "part.log")
        log.write(line)
        log.close()
    assert (tmp_path / "part.log").read_bytes() == b"one\ntwo\n"


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.binary(max_size=30), max_size=30))
def test_no_file_exceeds_the_limit_unless_one_line_does(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("log") / "part.log"
    log = LogFile(path, limit=40, kept=100)
    for line in lines:
        log.write(line)
    log.close()
    assert all(file.stat().st_size <= 40 for file in path.parent.iterdir())
    total = sum(file.stat().st_size for file in path.parent.iterdir())
    assert total == sum(map(len, lines))


def test_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "part.log"
    assert last_lines(path, 3) == []
    path.write_text("".join(f"{n}\n" for n in range(1000)))
    assert last_lines(path, 3) == ["997", "998", "999"]
