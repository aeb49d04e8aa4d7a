"""A tenant that writes, cuts, renames and removes all that it can reach harms no other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared_cards import MIB, SharedCards
from tests.support.waiting import eventually_sync, stretched

from lockstep.devices.sharing.region import Region

AGENT = """
import sys, threading
from pathlib import Path
from lockstep.devices.sharing.contexts import Contexts
from lockstep.devices.sharing.core.exposition import exposition
from lockstep.devices.sharing.granting import Granter
granter = Granter(Path(sys.argv[1]))
threading.Thread(target=granter.run_until, args=(lambda: False,), daemon=True).start()
contexts = Contexts(lambda uuids: {uuid: {1: 1 << 40} for uuid in uuids})
for line in sys.stdin:
    contexts.look(granter.shares(), float(line))
    print(len(exposition(granter.uses())), flush=True)
"""
"""What the node's agent does with shares; one line asks it to look once."""

HOSTILE = """
import os, random, shutil, sys
from pathlib import Path
share, draw = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
def gone(path):
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
def write(path):
    with open(os.open(path, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0) as file:
        if path.suffix == ".bell":
            for _ in range(2000):
                file.write(bytes(4096))
        size = max(1, path.stat().st_size)
        for _ in range(200):
            where = draw.choice((draw.randrange(size), draw.randrange(min(size, 4096))))
            os.pwrite(file.fileno(), draw.randbytes(draw.randrange(1, 64)), where)
def cut(path):
    os.truncate(path, draw.choice((0, 1, 100, 5000, 1 << 20, 1 << 34)))
def move(path):
    path.rename(path.with_suffix(draw.choice((".share", ".account", ".bell", ".x"))))
def other(path):
    gone(path)
    draw.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero"),
                 lambda: path.symlink_to(share), path.touch))()
print("begins", flush=True)
for step in range(int(sys.argv[3])):
    path = share.with_suffix(draw.choice((".share", ".account", ".bell")))
    try:
        draw.choice((write, write, cut, move, gone, other))(path)
    except (OSError, ValueError):
        pass
print("done", flush=True)
"""


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    yield found
    found.close()


@pytest.fixture
def agent(cards: SharedCards) -> Iterator[subprocess.Popen[str]]:
    command = (sys.executable, "-c", AGENT, str(cards.shelf.root))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    found = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
    cards.running.append(found)
    yield found


def looks(agent: subprocess.Popen[str], at: int) -> None:
    """Let the agent look at all shares; it says what it found."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write(f"{at}\n")
    agent.stdin.flush()
    assert int(agent.stdout.readline()) > 0


def hostile(cards: SharedCards, seed: int, steps: int) -> subprocess.Popen[str]:
    share = str(cards.shelf.path("bad", "main"))
    process = subprocess.Popen(
        (sys.executable, "-c", HOSTILE, share, str(seed), str(steps)),
        stdout=subprocess.PIPE,
        text=True,
    )
    cards.running.append(process)
    return process


def play(cards: SharedCards, agent: subprocess.Popen[str], seed: int, steps: int) -> None:
    cards.share("bad", memory=100, compute=40)
    cards.share("good", memory=100, compute=40)
    region = Region(cards.shelf.path("good", "main"))
    work = cards.start("good", *["alloc", "60", "plain", "run", "busy_1ms", "600"])
    # Its own programs run meanwhile; they may fail, and so may what they are told.
    cards.start("bad", *["fill", "1", "run", "busy_1ms", "600"])
    eventually_sync(lambda: region.account().card[0].launches > 20, 60, "work is granted")
    bad = hostile(cards, seed, steps)
    for at in range(3):
        looks(agent, at)
    said, _ = bad.communicate(timeout=stretched(120))
    assert said.split() == ["begins", "done"]
    before, launched = region.record.card[0].sequence, region.account().card[0].launches

    def goes_on() -> bool:
        fresh = Region(cards.shelf.path("good", "main")).record.card[0].sequence
        return bool(fresh > before + 5 and region.account().card[0].launches > launched + 5)

    eventually_sync(goes_on, 60, "the other share is granted and used")
    looks(agent, 10)
    assert agent.poll() is None
    assert work.poll() is None
    assert region.used(0) == 60 * MIB
    assert cards.run("good", *["alloc", "60", "plain"]) == ["alloc plain CUDA_ERROR_OUT_OF_MEMORY"]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_hostile_tenant_harms_no_other(
    cards: SharedCards, agent: subprocess.Popen[str], seed: int
) -> None:
    play(cards, agent, seed, 300)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_hostile_tenant_harms_no_other_for_long(
    cards: SharedCards, agent: subprocess.Popen[str], seed: int
) -> None:
    play(cards, agent, seed, 5000)
