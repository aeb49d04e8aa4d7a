"""Legal programs drawn at random do behind the front what they do without it, and they end.

``native/tenant/random.c`` draws them: kernels that wait for later ones, events, captures in three
modes, graphs with graphs and memory in them, contexts that are reset and destroyed, processes and
threads. A program alone on its card says after each call how much of the card is in use: behind the
front that is what the share's account says, without it what the driver says.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from tests.support.shared_cards import SharedCards
from tests.support.stub_gpus import BUILT
from tests.support.waiting import eventually_sync, stretched

from lockstep.devices.sharing.region import Region

RANDOM = BUILT / "random"
ALONE, MANY = ("150", "1", "0"), ("60", "4", "3")
"""Steps, processes, and threads of each after those."""


@dataclass
class Said:
    """What the processes of a program said, and what its share's account says afterwards."""

    lines: list[list[str]]
    region: Region


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    found.gpus.card(0, {"overlap": 1, "memory_reserved": 0})
    yield found
    found.close()


def start(
    cards: SharedCards, name: str | None, seed: int, shape: tuple[str, ...]
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        (str(RANDOM), str(seed), *shape, str(cards.place / f"said-{name}")),
        env=cards.environment(name),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    cards.running.append(process)
    return process


def run(cards: SharedCards, name: str | None, seed: int, shape: tuple[str, ...]) -> list[list[str]]:
    process = start(cards, name, seed, shape)
    _, error = process.communicate(timeout=stretched(60))
    assert (process.returncode, error) == (0, "")
    files = [cards.place / f"said-{name}.{number}" for number in range(int(shape[1]))]
    return [file.read_text().splitlines() for file in files]


def compare(cards: SharedCards, seed: int, shape: tuple[str, ...], compute: int) -> None:
    cards.share("one", memory=100_000, compute=compute)
    with cards.granted():
        assert run(cards, "one", seed, shape) == run(cards, None, seed, shape)
    region = Region(cards.shelf.path("one", "main"))
    said = region.account()
    assert (region.used(0), region.wants(), said.unknown, said.card[0].unheld) == (0, False, 0, 0)


@pytest.mark.parametrize("compute", [0, 40])
@pytest.mark.parametrize("seed", range(1, 9))
def test_a_random_program_does_as_without_the_front(
    cards: SharedCards, seed: int, compute: int
) -> None:
    compare(cards, seed, ALONE, compute)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_processes_and_threads_do_as_without_the_front(
    cards: SharedCards, seed: int
) -> None:
    compare(cards, seed, MANY, 30)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 300))
@pytest.mark.parametrize("shape", [ALONE, MANY], ids=["alone", "many"])
def test_many_random_programs_do_as_without_the_front(
    cards: SharedCards, seed: int, shape: tuple[str, ...]
) -> None:
    compare(cards, seed, shape, seed % 60)


def storm(cards: SharedCards, seeds: range) -> None:
    """Kill programs when they have launched a drawn number of times; nothing of them is left."""
    cards.share("one", memory=100_000, compute=60)
    share = cards.shelf.path("one", "main")
    with cards.granted():
        for seed in seeds:
            before = Region(share).account().card[0].launches
            until = before + Random(seed).randrange(1, 200)  # noqa: S311
            process = start(cards, "one", seed, MANY)

            def killed(until: int = until, process: subprocess.Popen[str] = process) -> bool:
                return process.poll() is not None or (
                    Region(share).account().card[0].launches >= until
                )

            eventually_sync(killed, 60, "the program works")
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=stretched(60))
            region = Region(share)
            eventually_sync(lambda region=region: not region.processes(), 60, "all are gone")
            assert (region.used(0), region.wants()) == (0, False)
        assert run(cards, "one", 1, ALONE) == run(cards, None, 1, ALONE)


def test_a_storm_of_kills_leaves_nothing(cards: SharedCards) -> None:
    storm(cards, range(12))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_a_long_storm_of_kills_leaves_nothing(cards: SharedCards, first: int) -> None:
    storm(cards, range(first, first + 100))
