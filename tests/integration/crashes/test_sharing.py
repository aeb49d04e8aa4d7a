"""Programs with a share, and the agent that grants it, killed for real: nothing leaks."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared_cards import MIB, SharedCards
from tests.support.waiting import eventually_sync

from lockstep.devices.sharing.region import Region

GRANT = (
    "import sys; from pathlib import Path; from lockstep.devices.sharing.granting import Granter;"
    "Granter(Path(sys.argv[1])).run_until(lambda: False)"
)


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    yield found
    found.close()


def agent(cards: SharedCards) -> subprocess.Popen[bytes]:
    return subprocess.Popen((sys.executable, "-c", GRANT, str(cards.shelf.root)))


def test_programs_killed_while_they_allocate_leak_nothing(cards: SharedCards) -> None:
    cards.share("one", memory=256)
    moments = random.Random(21)  # noqa: S311
    for _ in range(24):
        racing = [cards.start("one", "fill", "1") for _ in range(3)]
        for process in racing:
            try:
                process.wait(moments.random() * 0.01)
            except subprocess.TimeoutExpired:
                process.kill()
        for process in racing:
            process.communicate()
        region = Region(cards.shelf.path("one", "main"))
        assert region.used(0) == 0
    said = cards.run("one", "fill", "1")
    assert said == ["filled 256"]
    assert cards.most_used() <= 256 * MIB


def test_an_agent_killed_and_started_again_goes_on_granting(cards: SharedCards) -> None:
    cards.share("one", compute=50)
    first = agent(cards)
    program = cards.start("one", "run", "busy_1ms", "600")
    record = Region(cards.shelf.path("one", "main")).record.card[0]
    try:
        for _ in range(3):
            eventually_sync(lambda: record.sequence > 5, 30, "leases are granted")
            first.kill()
            first.wait()
            launched, granted = record.launches, record.sequence
            eventually_sync(lambda: record.launches > launched + 10, 30, "work goes on without it")  # noqa: B023
            first = agent(cards)
            eventually_sync(lambda: record.sequence > granted + 5, 30, "leases are granted again")  # noqa: B023
        assert program.poll() is None
    finally:
        first.kill()
        first.wait()


def test_a_program_killed_at_the_gate_keeps_nobody_waiting(cards: SharedCards) -> None:
    cards.share("one", compute=10)
    cards.share("other", compute=90)
    granting = agent(cards)
    try:
        for _ in range(5):
            process = cards.start("one", "run", "busy_3ms", "600")
            record = Region(cards.shelf.path("one", "main")).record.card[0]
            eventually_sync(lambda: record.launches > 0, 30, "it has begun")  # noqa: B023
            process.kill()
            process.wait()
            assert cards.run("other", "run", "busy_1ms", "0.1")
    finally:
        granting.kill()
        granting.wait()
