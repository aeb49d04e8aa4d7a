"""Shells and editors in a kernel's pod keep it from idling while they are at work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockstep.notebooks.inside.keeper import Keeper
from lockstep.notebooks.inside.others import Others

MARK = f"LOCKSTEP_KERNEL_TOKEN=of-test-{os.getpid()}"  # tests beside this one see it, too
SCRIPT = """
import sys, time
print("there", flush=True)
for line in sys.stdin:
    end = time.process_time() + float(line)
    while time.process_time() < end:
        pass
    print("done", flush=True)
"""


@contextmanager
def started(mark: str = MARK) -> Iterator[subprocess.Popen[str]]:
    """A process that computes for as long as it is told, with *mark* among its variables."""
    name, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-S", "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={name: value},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield process
        process.kill()


def compute(process: subprocess.Popen[str], seconds: float) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{seconds}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_new_and_computing_processes_are_busy_open_ones_are_not() -> None:
    now = [0.0]
    others = Others(MARK, clock=lambda: now[0])
    assert not others.at_work()
    with started() as process:
        assert others.at_work(), "it is new"
        now[0] += 10
        assert not others.at_work(), "it is only open"
        compute(process, 0.5)
        now[0] += 10
        assert others.at_work(), "it took 5 % of a core"
        now[0] += 10
        assert not others.at_work()
    assert not others.at_work(), "it is gone"


def test_processes_of_others_do_not_count() -> None:
    others = Others(MARK, clock=lambda: 0.0)
    others.at_work()
    with started("LOCKSTEP_KERNEL_TOKEN=of-another"):
        assert not others.at_work()


def test_typing_into_a_terminal_counts(tmp_path: Path) -> None:
    place = tmp_path / "42"
    (place / "fd").mkdir(parents=True)
    (place / "fd/0").symlink_to("/dev/pts/7")
    numbers = " ".join(["S", *["0"] * 18, "99", *["0"] * 20])
    (place / "stat").write_text(f"42 (a name) of) {numbers}")
    (place / "environ").write_text(f"A=1\0{MARK}\0")
    typed = [100.0]
    others = Others(MARK, tmp_path, lambda: 0.0, lambda _: typed[0])
    assert others.at_work()
    assert not others.at_work()
    typed[0] = 108.0
    assert others.at_work()


def test_a_kernel_does_not_idle_while_they_are_at_work() -> None:
    class Quiet:
        info = {"implementation": "fake"}

    now, works = [0.0], [True]
    keeper = Keeper(None, clock=lambda: now[0], others=lambda: works[0])
    keeper.kernel = Quiet()  # type: ignore[assignment]
    now[0] = 500.0
    assert keeper.state()["idle_for"] == 0.0
    works[0] = False
    now[0] = 600.0
    assert keeper.state()["idle_for"] == 100.0
