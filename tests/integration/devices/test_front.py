"""The front before the stub of CUDA: the memory of a share, over all processes of a container."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.support.shared_cards import FRONT, MIB, SharedCards
from tests.support.stub_gpus import NATIVE
from tests.support.waiting import eventually_sync, stretched

from lockstep.devices.sharing import layout
from lockstep.devices.sharing.clock import SECOND
from lockstep.devices.sharing.contexts import Contexts, Running
from lockstep.devices.sharing.core.contexts import SETTLING
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.sharing.region import Region

WAYS = ("plain", "async", "pool", "managed", "pitch", "array", "mip", "vmm", "nodes")
REFUSED = "CUDA_ERROR_OUT_OF_MEMORY"


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    yield found
    found.close()


def used(cards: SharedCards, name: str = "one", card: int = 0) -> float:
    return Region(cards.shelf.path(name, "main")).used(card) / MIB


def begin_holding(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    while process.stdout.readline() != "holding\n":
        pass


@pytest.mark.parametrize("way", WAYS)
def test_every_way_counts_once_and_comes_back(cards: SharedCards, way: str) -> None:
    cards.share("one", memory=100)
    alloc = ("alloc", "64", way)
    said = cards.run("one", *alloc, *alloc, "info", "free", *alloc, "free", "info")
    well = f"alloc {way} CUDA_SUCCESS"
    assert said == [well, f"alloc {way} {REFUSED}", "info 36 100", well, "info 100 100"]


def test_share_changes_while_its_program_runs(cards: SharedCards) -> None:
    small = cards.share("one", memory=100)
    one, more = ("alloc", "64", "plain"), ("line", "alloc", "64", "plain", "info")
    process = cards.start("one", *one, *more, *more, *more)

    def says(line: str = "") -> list[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        return [process.stdout.readline().strip() for _ in range(2 if line else 1)]

    well, refused = "alloc plain CUDA_SUCCESS", f"alloc plain {REFUSED}"
    assert says() == [well]
    assert says("go on\n") == [refused, "info 36 100"]
    large = msgspec.structs.replace(small, memory=200 * MIB)
    assert cards.shelf.resize(small, large) == 0
    assert says("go on\n") == [well, "info 72 200"]
    # Not below its use; down to it.
    assert cards.shelf.resize(large, small) == 128 * MIB
    exact = msgspec.structs.replace(small, memory=128 * MIB)
    assert cards.shelf.resize(large, exact) == 0
    assert says("go on\n") == [refused, "info 0 128"]


def test_contexts_count_as_the_driver_says(cards: SharedCards) -> None:
    cards.gpus.card(0, {"context_memory": 30 * MIB})
    cards.share("one", memory=100)
    granter = Granter(cards.shelf.root)
    more = ("line", "alloc", "40", "plain", "info")
    process = cards.start("one", "alloc", "40", "plain", *more)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "alloc plain CUDA_SUCCESS"
    granter.turn(granter.clock.now())

    def running(uuids: set[str]) -> Running:
        ask = "import pynvml as lib; from lockstep.devices.nvml import memory_by_process as by;"
        code = f"{ask} lib.nvmlInit(); print(by(lib, {uuids!r}))"
        said = subprocess.run(
            (sys.executable, "-c", code), env=cards.environment(), capture_output=True, check=True
        )
        found: Running = ast.literal_eval(said.stdout.decode())
        return found

    contexts = Contexts(running)
    for now in (0.0, SETTLING):
        contexts.look(granter.shares(), now)
    granter.turn(granter.clock.now() + SECOND)
    assert used(cards) == 70
    process.stdin.write("go on\n")
    process.stdin.flush()
    assert [process.stdout.readline().strip() for _ in range(2)] == [
        f"alloc plain {REFUSED}",
        "info 30 100",
    ]


def test_without_a_share_nothing_is_held(cards: SharedCards) -> None:
    assert cards.run(None, "alloc", "2000", "plain") == ["alloc plain CUDA_SUCCESS"]


def test_racing_processes_never_exceed_the_share(cards: SharedCards) -> None:
    cards.share("one", memory=512)
    racing = [cards.start("one", "fill", "1", "hold") for _ in range(16)]
    for process in racing:
        begin_holding(process)
    assert used(cards) == 512
    assert cards.most_used() == 512 * MIB


def test_memory_of_the_killed_comes_back(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    first = cards.start("one", "alloc", "90", "plain", "hold")
    begin_holding(first)
    assert used(cards) == 90
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert used(cards) == 0
    assert cards.run("one", "alloc", "90", "plain", "info")[-1] == "info 10 100"


def test_processes_see_what_the_others_hold(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    begin_holding(cards.start("one", "alloc", "60", "vmm", "hold"))
    assert cards.run("one", "info", "alloc", "50", "plain") == [
        "info 40 100",
        f"alloc plain {REFUSED}",
    ]


def test_a_forked_process_is_counted_by_itself(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    said = cards.run("one", "alloc", "60", "plain", "fork", "alloc", "60", "plain", "info")
    assert said.count(f"alloc plain {REFUSED}") == 1
    assert used(cards) == 0


def test_a_process_that_becomes_another_program_holds_nothing(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    said = cards.run("one", "alloc", "60", "plain", "exec", "alloc", "90", "plain")
    assert said == ["alloc plain CUDA_SUCCESS"] * 2


def test_a_container_without_its_share_gets_no_card(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    missing = str(cards.place / "none")
    process = cards.start("one", "info", LOCKSTEP_SHARE=missing)
    said, error = process.communicate(timeout=stretched(30))
    assert process.returncode == 3
    assert said.startswith("init ")
    assert "cannot be held" in error


NVML_SEES = """
import pynvml as n
n.nvmlInit()
cards = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print([(n.nvmlDeviceGetUUID(one)[-1], n.nvmlDeviceGetIndex(one)) for one in cards])
[card] = cards
for version in (None, n.nvmlMemory_v2):
    m = n.nvmlDeviceGetMemoryInfo(card, version)
    print(m.total >> 20, m.free >> 20, m.used >> 20)
for kind in ("Compute", "Graphics", "MPSCompute"):
    for call in (f"nvmlDeviceGet{kind}RunningProcesses{end}" for end in ("", "_v2", "_v3")):
        found = getattr(n, call)(card)
        print(call, [(one.pid, one.usedGpuMemory >> 20) for one in found])
def hidden(call, *more):
    try:
        return list(getattr(n, call)(card, *more))
    except n.NVMLError as error:
        return type(error).__name__
print(hidden("nvmlDeviceGetProcessUtilization", 0),
      hidden("nvmlDeviceGetEncoderSessions"), hidden("nvmlDeviceGetFBCSessions"))
for other in (0, 1):
    try:
        uuid = f"GPU-00000000-0000-0000-0000-{other:012d}"
        print(n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(uuid)))
    except n.NVMLError as error:
        print(type(error).__name__)
"""
"""All of NVML by which a program (nvidia-smi, a monitor) sees cards, memory and processes."""


def test_nvml_shows_only_the_containers_own(cards: SharedCards) -> None:
    cards.share("one", memory=100, cards=(1,))
    cards.share("other", memory=200, cards=(0, 1))
    held = [cards.start(name, "alloc", "60", "plain", "hold") for name in ("one", "other")]
    for process in held:
        begin_holding(process)
    done = subprocess.run(
        (sys.executable, "-W", "ignore", "-c", NVML_SEES),
        env=cards.environment("one"),
        capture_output=True,
        text=True,
        timeout=stretched(30),
        check=False,
    )
    pid = held[0].pid
    own = [(pid, 60)]
    assert done.stdout.splitlines() == [
        "[('1', 0)]",
        *["100 40 60"] * 2,
        *[f"nvmlDeviceGetComputeRunningProcesses{end} {own}" for end in ("", "_v2", "_v3")],
        *[f"nvmlDeviceGetGraphicsRunningProcesses{end} []" for end in ("", "_v2", "_v3")],
        *[f"nvmlDeviceGetMPSComputeRunningProcesses{end} []" for end in ("", "_v2", "_v3")],
        "NVMLError_NotFound [] []",
        "NVMLError_NotFound",
        "0",
    ], done.stderr


CHOSEN = {
    "": "alloc plain CUDA_SUCCESS alloc plain CUDA_ERROR_OUT_OF_MEMORY",
    "0": "alloc plain CUDA_SUCCESS alloc plain CUDA_ERROR_OUT_OF_MEMORY",
    "GPU-00000000-0000-0000-0000-000000000001": (
        "alloc plain CUDA_SUCCESS alloc plain CUDA_ERROR_OUT_OF_MEMORY"
    ),
    "1": "init CUDA_ERROR_NO_DEVICE",
    "GPU-00000000-0000-0000-0000-000000000000": "init CUDA_ERROR_NO_DEVICE",
}
"""What a program with a share of the second card does, by the cards that it chooses itself."""


@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_program_that_chooses_cards_meets_its_share(cards: SharedCards, chosen: str) -> None:
    cards.share("one", memory=100, cards=(1,))
    more = {"CUDA_VISIBLE_DEVICES": chosen} if chosen else {}
    process = cards.start("one", *("alloc 60 plain " * 2).split(), **more)
    said, _ = process.communicate(timeout=stretched(30))
    assert " ".join(said.split()) == CHOSEN[chosen]
    assert cards.most_used(0) == 0


NAMES = ("cuMemAlloc", "cuLaunchKernel", "cuMemGetInfo", "cuGetProcAddress", "cuDeviceGetCount")


def test_calls_found_by_name_are_the_fronts(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    script = f"""
import ctypes
front = ctypes.CDLL({str(FRONT / "libcuda.so.1")!r})
for name in {NAMES}:
    found = ctypes.c_void_p()
    assert not front.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 12080, 0, None)
    ours = [getattr(front, name + end, None) for end in ("_v2", "")]
    at = [ctypes.cast(one, ctypes.c_void_p).value for one in ours if one]
    print(name, found.value in at)
"""
    done = subprocess.run(
        (sys.executable, "-c", script),
        env=cards.environment("one"),
        capture_output=True,
        text=True,
        timeout=stretched(30),
        check=True,
    )
    # What is handed on as it is need not go through the front at all.
    assert done.stdout.split("\n")[:-1] == [
        f"{name} {name != 'cuDeviceGetCount'}" for name in NAMES
    ]


def test_both_languages_see_the_same_file() -> None:
    source = NATIVE / "front/share.h"
    program = (
        f'#include "{source}"\n#include <stdio.h>\nint main(void) {{ printf("%zu %zu %zu %zu", '
        "sizeof(Granted), offsetof(Granted, card), offsetof(Account, slot), sizeof(Account)); }"
    )
    where = NATIVE / "build/layout"
    subprocess.run(
        ("cc", "-x", "c", "-", "-o", str(where)),
        input=program,
        text=True,
        check=True,
        timeout=stretched(60),
    )
    said = subprocess.run((str(where),), capture_output=True, text=True, check=True).stdout
    ours = (
        layout.GRANTED_SIZE,
        layout.GrantedRecord.card.offset,
        layout.HEAD_SIZE,
        layout.ACCOUNT_SIZE,
    )
    assert said.split() == [str(one) for one in ours]


def test_a_share_is_made_anew_for_a_new_start(cards: SharedCards) -> None:
    cards.share("one", memory=100)
    before = cards.start("one", "alloc", "60", "plain", "hold")
    begin_holding(before)
    before.kill()
    before.wait()
    cards.share("one", memory=200)
    eventually_sync(lambda: cards.run("one", "info") == ["info 200 200"], 10, "the new share")
