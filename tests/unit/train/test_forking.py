"""Ranks are forked from a process that has their modules, and are as if they had been started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import eventually_sync

from lockstep.train.forking import PYTHON, SOCKET, ForkServer, fork
from lockstep.train.forkserver import words_of

SCRIPT = """
import os, sys
assert "xml.dom" in sys.modules
import beside
print(__name__, sys.argv[1:], os.environ["RANK"], os.getcwd(), beside.x, file=sys.stderr)
print(open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)), file=sys.stderr)
if sys.argv[1] == "fails":
    raise ValueError("no such column")
if sys.argv[1] == "waits":
    import time
    time.sleep(600)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    (tmp_path / "beside.py").write_text("x = 7\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    made = ForkServer(tmp_path, [sys.executable, "train.py"], ["xml.dom"])
    made.start(dict(os.environ), 1)
    try:
        yield made
    finally:
        made.close()


def forked(server: ForkServer, *words: str) -> Any:
    """Return a process that was forked, once the server listens."""
    env = {**os.environ, **server.variables(), "RANK": "3"}
    eventually_sync(Path(env[SOCKET]).exists, what="the server listens")
    return fork([sys.executable, *words], env, piped=True)


@pytest.mark.parametrize("flags", [[], ["-u"]])
def test_a_script_runs_as_if_it_were_started(
    server: ForkServer, tmp_path: Path, flags: list[str]
) -> None:
    script = str(tmp_path / "train.py")
    process = forked(server, *flags, script, "5")
    said = process.stderr.read().decode().splitlines()
    assert process.wait() == 5
    assert said[0] == f"__main__ ['5'] 3 {Path.cwd()} 7"
    assert said[1] == str([sys.executable, *flags, script, "5"])


@pytest.mark.parametrize(("words", "code"), [(["-m", "this"], 0), (["-c", "exit(4)"], 4)])
def test_modules_and_lines_run_too(server: ForkServer, words: list[str], code: int) -> None:
    process = forked(server, *words)
    process.stderr.read()
    assert process.wait() == code


def test_an_error_ends_with_its_own_lines(server: ForkServer, tmp_path: Path) -> None:
    process = forked(server, str(tmp_path / "train.py"), "fails")
    said = process.stderr.read().decode()
    assert process.wait() == 1
    assert said.endswith("ValueError: no such column\n")
    assert "forkserver" not in said


def test_a_rank_ends_by_its_signal_and_with_the_server(server: ForkServer, tmp_path: Path) -> None:
    script = str(tmp_path / "train.py")
    one, other = forked(server, script, "waits"), forked(server, script, "waits")
    with pytest.raises(subprocess.TimeoutExpired):
        one.wait(0.0)
    os.killpg(one.pid, signal.SIGTERM)
    assert one.wait() == -signal.SIGTERM
    server.close()
    assert other.wait() == -signal.SIGKILL
    # The pipe ends with the last process that holds it.
    other.stderr.read()
    assert server.variables() == {}


def test_what_cannot_be_forked_is_started(server: ForkServer, tmp_path: Path) -> None:
    told = {**os.environ, **server.variables()}
    script = [sys.executable, str(tmp_path / "train.py"), "0"]
    for command, env in (
        (["bash", "-c", "true"], told),
        ([sys.executable, "-X", "dev", "train.py"], told),
        (script, {**told, SOCKET: "off"}),
        (script, {**told, SOCKET: str(tmp_path / "none")}),
        (script, {**told, PYTHON: "/usr/bin/other"}),
        (script, {k: v for k, v in told.items() if k != SOCKET}),
        (script, {**told, "LOCKSTEP_EXPERIMENT": "{}"}),
    ):
        assert fork(command, env) is None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python train.py -u", ["train.py", "-u"]),
        ("python -u -m pkg.train 1", ["-m", "pkg.train", "1"]),
        ("python -c pass", ["-c", "pass"]),
        ("python -m", None),
        ("python", None),
        ("python -O train.py", None),
    ],
)
def test_only_plain_commands_are_forked(command: str, words: list[str] | None) -> None:
    assert words_of(command.split()) == words
