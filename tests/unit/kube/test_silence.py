"""A watch that falls silent is given up, and only that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.virtual_time import run_virtually

from lockstep.api.core import ConfigMap
from lockstep.kube.connection import Call
from lockstep.kube.errors import Unreachable
from lockstep.kube.watching import events

LINE = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"%d"}}}\n'
CALL = Call("GET", "/x")


class Stream:
    """A stream whose pieces come after so many seconds each; then it ends or falls silent."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self, pauses: list[float], *, ends: bool) -> None:
        self._pauses = pauses
        self._ends = ends
        self.closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for number, pause in enumerate(self._pauses, 1):
            await asyncio.sleep(pause)
            yield LINE % number
        if not self._ends:
            await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True

    async def open(self, _call: Call, _deadline: float) -> Stream:
        return self


async def read(stream: Stream, silence: float | None, busy: float = 0.0) -> list[str]:
    seen: list[str] = []
    connection: Any = stream
    async for event in events(connection, CALL, ConfigMap, deadline=1.0, silence=silence):
        seen.append(event.resource_version)
        await asyncio.sleep(busy)
    return seen


@pytest.mark.parametrize(
    ("pauses", "silence", "busy"),
    [
        ([], 10.0, 0.0),
        ([0.0] * 50, 10.0, 0.0),
        ([9.0] * 50, 10.0, 0.0),
        ([9.0, 0.0, 9.0], 10.0, 0.0),
        ([9.0, 9.0], 10.0, 100.0),
        ([1000.0], None, 0.0),
    ],
    ids=["nothing", "a storm", "slow", "in bursts", "a busy reader", "no limit"],
)
def test_a_stream_that_delivers_is_read_to_its_end(
    pauses: list[float], silence: float | None, busy: float
) -> None:
    stream = Stream(pauses, ends=True)
    seen = run_virtually(read(stream, silence, busy))
    assert seen == [str(number) for number in range(1, len(pauses) + 1)]
    assert stream.closed


@pytest.mark.parametrize("pauses", [[], [0.0, 3.0], [11.0]], ids=["ever", "after some", "late"])
def test_a_stream_that_falls_silent_is_given_up_in_time(pauses: list[float]) -> None:
    async def given_up_after() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unreachable) as caught:
            await read(stream, 10.0)
        assert caught.value.reason == "Silence"
        return asyncio.get_running_loop().time() - began

    stream = Stream(pauses, ends=False)
    silent_from = sum(pause for pause in pauses if pause < 10.0)
    assert run_virtually(given_up_after()) == pytest.approx(silent_from + 10.0)
    assert stream.closed


def test_cancelling_a_reader_ends_it_and_is_no_silence() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(read(stream, 10.0))
        await asyncio.sleep(5.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    stream = Stream([0.0], ends=False)
    run_virtually(cancelled())
    assert stream.closed
