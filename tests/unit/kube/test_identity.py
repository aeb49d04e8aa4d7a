"""Whether a candidate is gone is said only of processes that this kernel knows."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from lockstep.kube.identity import is_gone, own_identity

PROGRAM = (
    "from lockstep.kube.identity import own_identity; print(own_identity(), flush=True); input()"
)


def test_a_process_is_gone_only_after_it_has_ended() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    identity = process.stdout.readline().strip()
    assert not is_gone(identity)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped
    assert is_gone(identity)
    process.wait()
    assert is_gone(identity)


def test_candidates_of_one_process_differ_and_are_there() -> None:
    first, second = own_identity(), own_identity()
    assert first != second
    assert not is_gone(first)


@pytest.mark.parametrize(
    ("part", "other", "gone"),
    [
        (r"_[0-9a-f]{8}-", "_00000000-", False),  # another boot, or another machine
        (r"-\d+-(\d+)-(\d+)_", r"-1-\1-\2_", False),  # another PID namespace
        (r"-(\d+)_(?=[0-9a-f]+$)", "-1_", True),  # the PID is somebody else's by now
        (r".*", "scheduler-0", False),
        (r".*", "", False),
    ],
)
def test_what_cannot_be_known_is_not_gone(part: str, other: str, gone: bool) -> None:
    identity = re.sub(part, other, own_identity(), count=1)
    assert is_gone(identity) is gone
