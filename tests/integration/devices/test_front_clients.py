"""NVIDIA's own clients of the driver behind the front: its Python bindings, and its runtime."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.shared_cards import SharedCards

from lockstep.devices.sharing.region import Region

BINDINGS = """
import json
from cuda.bindings import driver as cu
said = {}
def call(what, answer):
    said[what] = int(answer[0])
    return answer[1] if len(answer) == 2 else answer[1:]
mib = 1 << 20
call("init", cu.cuInit(0))
device = call("device", cu.cuDeviceGet(0))
call("current", cu.cuCtxSetCurrent(call("retain", cu.cuDevicePrimaryCtxRetain(device))))
stream = call("stream", cu.cuStreamCreate(1))
call("big", cu.cuMemAlloc(500 * mib))
at = call("small", cu.cuMemAlloc(60 * mib))
call("second", cu.cuMemAllocAsync(60 * mib, stream))
said["total"] = call("info", cu.cuMemGetInfo())[1] // mib
mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
call("begin", cu.cuStreamBeginCapture(stream, mode))
call("captured", cu.cuMemsetD8Async(at, 0, 60 * mib, stream))
graph = call("instantiate", cu.cuGraphInstantiate(call("end", cu.cuStreamEndCapture(stream)), 0))
for _ in range(20):
    call("launch", cu.cuGraphLaunch(graph, stream))
call("sync", cu.cuStreamSynchronize(stream))
call("reset", cu.cuDevicePrimaryCtxReset(device))
print(json.dumps({what: result for what, result in said.items() if result}))
"""
"""What the bindings call; it says what is not 0."""

RUNTIME = """
import ctypes, json, sys
cuda, count, version = ctypes.CDLL(sys.argv[1]), ctypes.c_int(), ctypes.c_int()
cuda.cudaDriverGetVersion(ctypes.byref(version))
print(json.dumps([cuda.cudaGetDeviceCount(ctypes.byref(count)), version.value]))
"""


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[SharedCards]:
    found = SharedCards(tmp_path)
    found.gpus.set(cuda_version=13000)
    found.gpus.card(0, {"memory_reserved": 0})
    found.share("one", memory=100)
    yield found
    found.close()


def run(cards: SharedCards, name: str | None, script: str, *arguments: str) -> Any:
    done = subprocess.run(
        (sys.executable, "-c", script, *arguments),
        env=cards.environment(name),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


def runtime() -> str:
    """Return the path of the CUDA runtime that torch brings."""
    found = importlib.util.find_spec("nvidia")
    places = found.submodule_search_locations if found is not None else None
    files = [one for place in places or () for one in Path(place).rglob("libcudart.so.*")]
    return str(files[0]) if files else pytest.skip("no CUDA runtime: pip install lockstep[train]")


def test_nvidias_bindings_are_held_to_the_share(cards: SharedCards) -> None:
    pytest.importorskip("cuda.bindings.driver", reason="no cuda-bindings")
    assert run(cards, None, BINDINGS) == {"total": 144384}
    assert run(cards, "one", BINDINGS) == {"total": 100, "big": 2, "second": 2}
    region = Region(cards.shelf.path("one", "main"))
    said = region.account()
    assert (region.used(0), said.unknown, said.stranger) == (0, 0, b"")
    assert said.card[0].launches == 20


def test_nvidias_runtime_finds_each_call_behind_the_front(cards: SharedCards) -> None:
    # It looks up all its calls first. Then it asks for tables without names that no stub has: 801.
    assert run(cards, None, RUNTIME, runtime()) == [801, 13000]
    assert run(cards, "one", RUNTIME, runtime()) == [801, 13000]
    said = Region(cards.shelf.path("one", "main")).account()
    assert (said.unknown, said.stranger) == (0, b"")
