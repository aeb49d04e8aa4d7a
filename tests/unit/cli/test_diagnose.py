"""``lockstep diagnose``: logs from anywhere are read within bounds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lockstep.cli.main import app


def test_a_line_of_a_terabyte_is_read_in_parts(tmp_path: Path) -> None:
    log = tmp_path / "rank1.log"
    with log.open("wb") as file:
        file.write(b"starts\n")
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\nModuleNotFoundError: No module named 'apex'\n")
    told = CliRunner().invoke(app, ["diagnose", "--logs", str(log), "-o", "json"])
    verdict = json.loads(told.stdout)
    assert (verdict["class"], verdict["place"]["ranks"]) == ("user", [1])


@pytest.mark.parametrize("data", [b"", b"\x80\x04cos\nsystem\n.", bytes(range(256)) * 64])
def test_any_file_gets_an_answer(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    told = CliRunner().invoke(app, ["diagnose", "--logs", str(tmp_path), "-o", "json"])
    assert told.exit_code == 0
    assert json.loads(told.stdout)["class"] == "unknown"
