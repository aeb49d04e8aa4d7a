from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.cli.failure import CommandFailed
from lockstep.cli.up import lock

HOLDER = """
import os, subprocess, sys
from pathlib import Path
from lockstep.cli.up import lock
held = lock.take(Path(sys.argv[1]))
child = subprocess.Popen(
    [sys.executable, "-c", "import sys; sys.stdin.read()"],
    stdin=subprocess.PIPE, pass_fds=(held.fd,),
)
print("taken", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        yield process
        process.kill()


def test_a_second_one_on_the_same_data_is_refused(
    tmp_path: Path, holder: subprocess.Popen[bytes]
) -> None:
    assert lock.holder(tmp_path) == holder.pid
    with pytest.raises(CommandFailed, match=f"already runs on {tmp_path} .process {holder.pid}"):
        lock.take(tmp_path)


def test_the_hold_outlives_a_killed_holder_until_its_children_end(
    tmp_path: Path, holder: subprocess.Popen[bytes]
) -> None:
    holder.kill()
    holder.wait()
    taken = lock.take(tmp_path)
    assert lock.holder(tmp_path) == os.getpid()
    taken.release()
    assert lock.holder(tmp_path) is None


def test_nobody_holds_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert lock.holder(tmp_path / "none") is None


def test_a_released_directory_is_free_at_once(tmp_path: Path) -> None:
    for _ in range(3):
        lock.take(tmp_path).release()
        assert lock.holder(tmp_path) is None
