"""Programs with a share, and the agent that grants it, killed for real: nothing leaks."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared_cards import MIB, SharedCards
from tests.support.waiting import eventually_sync

from lockstep.devices.sharing.clock import SECOND
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

    def seen() -> tuple[int, int]:
        region = Region(cards.shelf.path("one", "main"))
        return region.record.card[0].sequence, region.account().card[0].launches

    try:
        for _ in range(3):
            eventually_sync(lambda: seen()[0] > 5, 30, "leases are granted")
            first.kill()
            first.wait()
            granted, launched = seen()
            eventually_sync(lambda: seen()[1] > launched + 10, 30, "work goes on without it")  # noqa: B023
            first = agent(cards)
            eventually_sync(lambda: seen()[0] > granted + 5, 30, "leases are granted again")  # noqa: B023
        assert program.poll() is None
    finally:
        first.kill()
        first.wait()


def test_a_program_killed_at_the_gate_waits_no_longer(cards: SharedCards) -> None:
    cards.share("one", compute=20, policy="burst")
    cards.share("other", compute=20, policy="burst")
    granting = agent(cards)
    region = Region(cards.shelf.path("one", "main"))
    try:
        for _ in range(5):
            process = cards.start("one", "run", "busy_3ms", "600")
            beside = cards.start("other", "run", "busy_1ms", "600")
            eventually_sync(lambda: region.waiting(0) > 0, 30, "it waits at the gate")
            process.kill()
            process.wait()
            assert region.waiting(0) == 0
            assert not region.wants()
            # Its part of the time is lent to the other at once.
            record = Region(cards.shelf.path("other", "main"))
            before = record.account().card[0].busy
            eventually_sync(lambda: record.account().card[0].busy > before + SECOND, 30, "lent")  # noqa: B023
            beside.kill()
            beside.wait()
    finally:
        granting.kill()
        granting.wait()


def test_no_step_of_a_killed_tenant_leaves_anything(cards: SharedCards) -> None:
    """Programs that launch and allocate are killed at drawn moments, also all at once."""
    cards.share("one", memory=256, compute=50)
    granting = agent(cards)
    moments = random.Random(36)  # noqa: S311
    region = Region(cards.shelf.path("one", "main"))
    what = ("fill", "16", "graph", "busy_20us", "8", "600")
    try:
        for _ in range(12):
            running = [cards.start("one", *what) for _ in range(3)]
            for process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(moments.random() * 0.05)
                process.kill()
            for process in running:
                process.communicate()
            assert (region.used(0), region.waiting(0), region.wants()) == (0, 0, False)
        assert granting.poll() is None
    finally:
        granting.kill()
        granting.wait()
