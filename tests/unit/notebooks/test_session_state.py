"""Sessions of real kernels, parked and brought back into fresh ones."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="needs ipykernel")
from lockstep.notebooks.inside.kernel import Kernel
from lockstep.notebooks.inside.session_state import ARRAYS, META

WRITTEN = """
import dataclasses, enum, functools, random, threading
import numpy as np
base = np.arange(10.0)
view = base[2:5]
same = base
count = 0
def bump():
    global count
    count += 1
    return count
def outer(k):
    def inner(v):
        return v * k + count
    return inner
triple = outer(3)
class Model:
    made = []
    def __init__(self, size):
        self.size = size
        Model.made.append(self)
    def hello(self):
        return f"{self.size} {count}"
class Colour(enum.Enum):
    RED = 1
@dataclasses.dataclass
class Point:
    x: int = 1
model = Model(4)
pair = [model, model]
half = functools.partial(triple, 2)
lock = threading.Lock()
loop = []
loop.append(loop)
random.seed(5)
expected = random.Random(5).random()
"""
CHECKED = """
view[0] = 99
assert base[2] == 99 and same is base, "views share memory"
assert bump() == 1 and count == 1, "functions see the session's globals"
assert triple(2) == 7 and half() == 7
assert pair[0] is pair[1] is model and type(model) is Model
assert Model.made == [model] and model.hello() == "4 1"
assert Colour(1) is Colour.RED and Point() == Point(1)
assert loop[0] is loop and lock.acquire(blocking=False)
assert random.random() == expected, "random states"
assert base.flags.writeable
"""


@asynccontextmanager
async def running() -> AsyncIterator[Kernel]:
    kernel = Kernel(sys.executable, lambda _channel, _message: None, {})
    await kernel.start()
    try:
        yield kernel
    finally:
        await kernel.stop()


async def run(kernel: Kernel, code: str) -> None:
    """Run *code* as a cell; what it raises fails the test."""
    assert kernel._client is not None
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    reply = await kernel._request(kernel._client.session.msg("execute_request", content))
    assert reply["content"]["status"] == "ok", "\n".join(reply["content"].get("traceback", []))


async def names(kernel: Kernel) -> dict[str, str]:
    found = (await kernel.ask("obstacles"))["done"]
    return {one["name"].split(" (")[0]: one["type"] for one in found}


async def test_session_comes_back_as_it_was(tmp_path: Path) -> None:
    async with running() as kernel:
        await run(kernel, WRITTEN)
        assert await names(kernel) == {}
        assert "done" in await kernel.ask("save", str(tmp_path), [])
    async with running() as kernel:
        assert "done" in await kernel.ask("load", str(tmp_path))
        await run(kernel, CHECKED)


async def test_what_cannot_be_kept_is_named_before(tmp_path: Path) -> None:
    async with running() as kernel:
        await run(
            kernel,
            "import threading, sqlite3\n"
            "numbers = (n for n in range(3))\n"
            "file = open('/etc/hosts')\n"
            "base = sqlite3.connect(':memory:')\n"
            "class Bad(Exception):\n"
            "    def __init__(self, a, b): super().__init__(a)\n"
            "bad = Bad(1, 2)\n"
            "stop = threading.Event()\n"
            "threading.Thread(target=stop.wait, name='mine').start()\n"
            "good = 1\n",
        )
        found = await names(kernel)
        assert {name: found[name] for name in ("numbers", "file", "base")} == {
            "numbers": "generator",
            "file": "TextIOWrapper",
            "base": "Connection",
        }
        assert found["thread mine"] == "Thread"
        assert "good" not in found
        await run(kernel, "stop.set(); file.close(); del numbers, file, base, stop")
        answer = await kernel.ask("save", str(tmp_path), list(await names(kernel)))
        # It pickles, and fails only when it is loaded.
        assert [one["name"] for one in answer["obstacles"]] == ["bad"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("python", "kept by Python 2.7"),
        ("arrays", f"{ARRAYS} is not what was written"),
        ("short", f"{ARRAYS} is shorter"),
    ],
)
async def test_damaged_state_is_refused_unread(tmp_path: Path, change: str, says: str) -> None:
    async with running() as kernel:
        await run(kernel, "import numpy as np; a = np.arange(1000.0)")
        assert "done" in await kernel.ask("save", str(tmp_path), [])
        if change == "python":
            meta = json.loads((tmp_path / META).read_text())
            (tmp_path / META).write_text(json.dumps({**meta, "python": [2, 7]}))
        else:
            data = bytearray((tmp_path / ARRAYS).read_bytes())
            data[100] ^= 1
            (tmp_path / ARRAYS).write_bytes(data[:500] if change == "short" else data)
        await run(kernel, "a = 'mine'")
        found: dict[str, Any] = await kernel.ask("load", str(tmp_path))
        assert says in found["error"]
        await run(kernel, "assert a == 'mine'")
