"""Legal programs behind the front: they do and say what they do without it, and they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.shared_cards import FRONT, MIB, SharedCards
from tests.support.stub_gpus import BUILT

from lockstep.devices.sharing.region import Region

CASES = BUILT / "cases"
LIMIT = 100


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    found.gpus.card(0, {"overlap": 1, "memory_reserved": 0})
    yield found
    found.close()


def run(cards: SharedCards, name: str | None, case: str, way: str = "linked", **more: str) -> str:
    done = subprocess.run(
        (str(CASES), way, case),
        env=cards.environment(name, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not done.stderr, done.stderr
    return " ".join(done.stdout.split())


AS_WITHOUT = {
    "spin": "done 0",
    "pipeline": "done 0",
    "persistent": "done 0",
    "streams": "end 0",
    "strict": "capture 0 nodes 5 end 0",
    "local": "capture 0 nodes 5 end 0",
    "relaxed": "capture 0 nodes 5 end 0",
    "given": "begin 0 end 0 nodes 4",
    "reset": "take 0 reset 0 used 0 take 0 end 0",
    "destroy": "take 0 destroy 0 take 0 destroy 0 take 0 destroy 0",
    "release": "take 0 take 0 take 0",
    "transient": "first 0 second 0 again 0",
}
"""What cases say, with and without a share."""


@pytest.mark.parametrize("case", [one for one in AS_WITHOUT if one != "transient"])
@pytest.mark.parametrize("compute", [0, 50])
def test_legal_programs_end_as_without_the_front(
    cards: SharedCards, case: str, compute: int
) -> None:
    cards.share("one", memory=LIMIT, compute=compute)
    assert run(cards, None, case) == AS_WITHOUT[case]
    with cards.granted():
        assert run(cards, "one", case) == AS_WITHOUT[case]
    region = Region(cards.shelf.path("one", "main"))
    assert (region.used(0), region.wants(), region.account().unknown) == (0, False, 0)


GRAPHS = {
    "captured": "used 0 first 0 second 2 again 0",
    "transient": "first 0 second 2 again 0",
    "cloned": "first 0 second 2 again 0",
    "child": "first 0 second 2 again 0",
}
"""Of a share of 100 MiB: each instantiated graph needs 60 MiB at one time."""


@pytest.mark.parametrize("case", GRAPHS)
def test_memory_of_graphs_counts_however_they_came_about(cards: SharedCards, case: str) -> None:
    cards.share("one", memory=LIMIT)
    assert run(cards, "one", case) == GRAPHS[case]


@pytest.mark.parametrize("way", ["linked", "dlsym", "dlvsym", "deepbind", "proc"])
@pytest.mark.parametrize("alias", ["", "1"], ids=["same addresses", "other addresses"])
def test_the_cap_holds_at_every_way_in(cards: SharedCards, way: str, alias: str) -> None:
    cards.share("one", memory=LIMIT)
    more = {"LOCKSTEP_CUDA_ALIAS": alias} if alias else {}
    assert run(cards, "one", "big", way, **more) == "take 2 take 0"
    assert Region(cards.shelf.path("one", "main")).account().unknown == 0


@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so"])
def test_libraries_without_a_version_are_the_fronts(cards: SharedCards, name: str) -> None:
    cards.share("one", memory=LIMIT)
    script = f"import ctypes; ctypes.CDLL({name!r}); print(open('/proc/self/maps').read())"
    done = subprocess.run(
        (sys.executable, "-c", script),
        env=cards.environment("one"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(FRONT) in done.stdout


def holding(cards: SharedCards, case: str, lines: int, name: str | None = "one") -> list[str]:
    process = subprocess.Popen(
        (str(CASES), "linked", case),
        env=cards.environment(name),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    cards.groups.append(process.pid)
    return [process.stdout.readline().strip() for _ in range(lines)]


def test_a_process_whose_main_thread_ended_still_counts(cards: SharedCards) -> None:
    cards.share("one", memory=LIMIT)
    assert holding(cards, "headless", 1) == ["take 0"]
    assert run(cards, "one", "big") == "take 2 take 2"
    assert Region(cards.shelf.path("one", "main")).used(0) == 60 * MIB


def test_nested_pid_namespaces_share_one_account(cards: SharedCards) -> None:
    cards.share("one", memory=LIMIT)
    said = holding(cards, "nested", 3)
    assert sorted(said) == ["take 0", "take 2", "take 2"]
    assert Region(cards.shelf.path("one", "main")).used(0) == 60 * MIB


def test_the_stub_tells_equal_numbers_of_containers_apart(cards: SharedCards) -> None:
    assert holding(cards, "nested", 3, name=None) == ["take 0"] * 3
    assert cards.most_used() == 180 * MIB
