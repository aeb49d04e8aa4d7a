"""Parking 1 GiB of arrays and bringing it back, and 60 sessions of users kept or named."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.figure import SAME_RUN, Figure, NotMeasured
from bench.support.sessions import SESSIONS, Session

SLOW = True
ARRAYS: Final = 16
BYTES: Final = 1 << 30
FIXED, READING = 3.0, 1.5
"""Bar of a restore: seconds, and times the time that reading the bytes takes."""
KEPT: Final = 90.0


def run() -> list[Figure]:
    try:
        import ipykernel  # noqa: F401
    except ImportError as error:
        raise NotMeasured("it needs the notebooks extra and ipykernel") from error
    figures = asyncio.run(_arrays())
    return [*figures, *asyncio.run(_sessions())]


@asynccontextmanager
async def _running() -> AsyncIterator[Any]:
    from lockstep.notebooks.inside.kernel import Kernel

    kernel = Kernel(sys.executable, lambda _channel, _message: None, dict(os.environ))
    await kernel.start()
    try:
        yield kernel
    finally:
        await kernel.stop()


async def _cell(kernel: Any, code: str) -> str:
    """Run a cell; return what it raised, empty where it raised nothing."""
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    reply = await kernel._request(kernel._client.session.msg("execute_request", content))
    return str(reply["content"].get("evalue", "")) if reply["content"]["status"] != "ok" else ""


async def _arrays() -> list[Figure]:
    with tempfile.TemporaryDirectory() as place:
        async with _running() as kernel:
            made = f"import numpy as np; x = [np.random.rand({BYTES // 8 // ARRAYS}) for _ in range"
            await _cell(kernel, f"{made}({ARRAYS})]")
            start = time.perf_counter()
            answer = await kernel.ask("save", place, [])
            kept = time.perf_counter() - start
            assert "done" in answer, answer
        start = time.perf_counter()
        async with _running() as kernel:
            assert "done" in await kernel.ask("load", place)
            failed = await _cell(kernel, f"assert len(x) == {ARRAYS} and x[0].flags.writeable")
            assert not failed, failed
            restored = time.perf_counter() - start
        reading = _read(Path(place))
    bar = FIXED + READING * reading
    return [
        Figure("1 GiB of arrays kept and tried by a fresh interpreter", kept, "s", better="lower"),
        Figure(
            "cell after parking 1 GiB on disk: process, state, cell",
            restored,
            "s",
            better="lower",
            limit=bar,
            peer=reading,
            peer_name="reading the bytes",
            source=SAME_RUN,
        ),
    ]


def _read(place: Path) -> float:
    start = time.perf_counter()
    for file in place.iterdir():
        with file.open("rb", buffering=0) as opened:
            while opened.read(64 << 20):
                pass
    return time.perf_counter() - start


async def _sessions() -> list[Figure]:
    """Keep each session and look at it in a fresh kernel."""
    kept = honest = 0
    for session in SESSIONS:
        came_back, was_named = await _one(session)
        kept += came_back
        honest += came_back or was_named
        if not came_back and not was_named:
            print(f"  neither equal nor named: {session.name}", file=sys.stderr)
    of = 100.0 / len(SESSIONS)
    name = f"{len(SESSIONS)} sessions"
    return [
        Figure(f"{name}: equal afterwards, or named before", honest * of, "%", limit=100.0),
        Figure(f"{name}: kept", kept * of, "%", limit=KEPT),
    ]


async def _one(session: Session) -> tuple[bool, bool]:
    with tempfile.TemporaryDirectory() as place:
        async with _running() as kernel:
            failed = await _cell(kernel, session.written)
            assert not failed, f"{session.name}: {failed}"
            answer = await kernel.ask("save", place, [])
            if "done" not in answer:
                return False, bool(answer.get("obstacles"))
        async with _running() as kernel:
            if "done" not in await kernel.ask("load", place):
                return False, False
            failed = await _cell(kernel, session.checked)
            return not failed, False
