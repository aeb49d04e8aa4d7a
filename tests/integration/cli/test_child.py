"""Real processes under supervision, killed for real."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.support.waiting import eventually, stretched

from lockstep.cli.failure import CommandFailed
from lockstep.cli.up.child import Child, Part

STAYS = """
import os, signal, sys, threading
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), os._exit(0)))
print("ready", os.getpid(), flush=True)
sys.stdin.read()
print("leash cut", flush=True)
"""
IGNORES_TERM = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.read()
"""
FAILS = "import sys; sys.exit('cannot: the number is 42')"
LEAVES_A_HEIR = """
import subprocess, sys
heir = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=-3)
print("ready", heir.pid, flush=True)
sys.stdin.read()
"""


class Stage:
    """Children that are stopped at the end of a test, and what was said about them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.said: list[str] = []
        self.children: list[Child] = []
        self.lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)

    def play(self, script: str, grace: float = 5.0) -> Child:
        part = Part("part", (sys.executable, "-c", script), grace)
        child = Child(part, self.directory, lock=self.lock, say=self.said.append)
        self.children.append(child)
        return child

    def pids(self) -> list[int]:
        text = (self.directory / "part.log").read_text()
        return [int(line.split()[1]) for line in text.splitlines() if line.startswith("ready ")]


@pytest.fixture
async def stage(tmp_path: Path):
    built = Stage(tmp_path)
    yield built
    await asyncio.gather(*(child.stop() for child in built.children))
    os.close(built.lock)


async def test_a_part_reports_ready_and_ends_on_request(stage: Stage) -> None:
    child = stage.play(STAYS)
    await asyncio.wait_for(child.ready.wait(), stretched(10))
    await child.stop()
    assert child.task.done()
    assert child.log_path.read_text().splitlines()[-1] == "bye"
    assert stage.said == []


async def test_a_killed_part_is_started_again(stage: Stage) -> None:
    child = stage.play(STAYS)
    await asyncio.wait_for(child.ready.wait(), stretched(10))
    (first,) = stage.pids()
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: len(stage.pids()) == 2)
    assert stage.said == ["part ended (killed by SIGKILL); starting it again"]


async def test_a_part_that_ignores_the_request_is_killed_in_time(stage: Stage) -> None:
    child = stage.play(IGNORES_TERM, grace=0.2)
    await asyncio.wait_for(child.ready.wait(), stretched(10))
    began = time.monotonic()
    await child.stop()
    assert time.monotonic() - began >= 0.2
    assert any("killing it" in line for line in stage.said)


async def test_a_part_that_cannot_start_is_reported_with_last_words(stage: Stage) -> None:
    child = stage.play(FAILS)
    with pytest.raises(CommandFailed, match=r"part ended \(exit code 1\) 3 times") as caught:
        await asyncio.wait_for(child.task, stretched(20))
    assert "cannot: the number is 42" in str(caught.value)
    assert str(child.log_path) in caught.value.hint


async def test_the_end_is_noticed_while_a_heir_holds_the_output(stage: Stage) -> None:
    child = stage.play(LEAVES_A_HEIR)
    await asyncio.wait_for(child.ready.wait(), stretched(10))
    (heir,) = stage.pids()
    try:
        await asyncio.wait_for(child.stop(), stretched(5))
        os.kill(heir, 0)
    finally:
        os.kill(heir, signal.SIGKILL)


async def test_a_part_notices_that_its_supervisor_was_killed(tmp_path: Path) -> None:
    supervisor = f"""
import asyncio, os, sys
from pathlib import Path
from lockstep.cli.up.child import Child, Part
async def main():
    part = Part("part", (sys.executable, "-c", {STAYS!r}))
    child = Child(part, Path({str(tmp_path)!r}), lock=os.open("/dev/null", os.O_RDONLY), say=print)
    await child.ready.wait()
    print("up", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", supervisor, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), stretched(20)) == b"up\n"
    text = (tmp_path / "part.log").read_text()
    part = int(text.split()[1])
    process.kill()
    await process.wait()
    await eventually(lambda: not Path(f"/proc/{part}").exists() or _is_zombie(part), 60)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1].startswith("Z")
    except OSError:
        return True
