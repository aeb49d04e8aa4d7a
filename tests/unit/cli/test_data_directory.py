"""A data directory that cannot be used gives an error and a hint, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cli.failure import CommandFailed
from lockstep.cli.up import lock


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda base: base / "file", "Not a directory|File exists"),
        (lambda base: base / "file" / "below", "Not a directory"),
        (lambda _: Path("/proc/nope"), "No such file or directory"),
        (lambda _: Path("/sys/nope"), "Operation not permitted|Permission denied|Read-only"),
    ],
    ids=["a file", "below a file", "in /proc", "without the right"],
)
def test_a_data_directory_that_cannot_be_used(make, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    data = make(tmp_path)
    with pytest.raises(CommandFailed, match=words) as failed:
        lock.require_usable(data)
    assert str(data) in str(failed.value)
    assert "choose a directory" in failed.value.hint
