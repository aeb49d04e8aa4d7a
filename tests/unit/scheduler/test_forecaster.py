"""Looking ahead in a process of its own: what it finds comes back, and nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from tests.support.running import Running
from tests.support.waiting import eventually

from lockstep.scheduler import forecaster as module
from lockstep.scheduler.core.outlook import Estimate
from lockstep.scheduler.core.units import UnitKey
from lockstep.scheduler.forecaster import Forecaster


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACE", 0.001)
    monkeypatch.setattr(module, "SPARING", 0)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes forked in this test; what others have started may still run."""
    pids, real = list[int](), os.fork

    def fork() -> int:
        pid = real()
        if pid:
            pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", fork)
    return pids


def gone(pid: int) -> bool:
    """Return whether nothing is left of a forked process, not even its body."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


async def test_what_is_found_comes_back_and_the_state_stays_as_it_was(forked: list[int]):
    world = Running.on("s/l: a:8 b:8")
    world.run("x: 2x8")
    world.run("y: 1x8")
    before, seen = world.places("x"), dict[UnitKey, Estimate]()
    one = Forecaster(world.decider, lambda found, _: seen.update(found))
    task = asyncio.create_task(one.run())
    try:
        one.note()
        await eventually(lambda: bool(seen))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    expected = Estimate(None, "gang x has no expected run time")
    assert seen == {UnitKey("Gang", "default", "y"): expected}
    assert world.places("x") == before
    assert forked and all(gone(pid) for pid in forked)


async def test_without_memory_for_it_the_scheduler_goes_on(monkeypatch: pytest.MonkeyPatch):
    world = Running.on("s/l: a:8 b:8")
    world.run("x: 2x8")
    world.run("y: 1x8")
    looks = list[dict[UnitKey, Estimate]]()
    one = Forecaster(world.decider, lambda found, _: looks.append(found))
    task = asyncio.create_task(one.run())
    tried = asyncio.Event()

    def refuse() -> int:
        tried.set()
        raise OSError(12, "Cannot allocate memory")

    try:
        with monkeypatch.context() as full:
            full.setattr(os, "fork", refuse)
            one.note()
            await tried.wait()
        one.note()
        await eventually(lambda: bool(looks))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_was_said_before_it_was_killed_counts(monkeypatch: pytest.MonkeyPatch):
    world = Running.on("s/l: a:8 b:8")
    world.run("x: 2x8")
    world.run("y: 1x8")
    real = module._read

    async def cut(descriptor: int) -> bytes:
        return await real(descriptor) + b'["Gang","default","z",nu'

    monkeypatch.setattr(module, "_read", cut)
    looks = list[dict[UnitKey, Estimate]]()
    one = Forecaster(world.decider, lambda found, _: looks.append(found))
    task = asyncio.create_task(one.run())
    try:
        one.note()
        await eventually(lambda: bool(looks))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [key.name for key in looks[0]] == ["y"]


async def test_one_that_is_stuck_is_ended_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch, forked: list[int]
):
    world = Running.on("s/l: a:8 b:8")
    world.run("x: 2x8")
    world.run("y: 1x8")
    looks = list[dict[UnitKey, Estimate]]()
    one = Forecaster(world.decider, lambda found, _: looks.append(found))
    task = asyncio.create_task(one.run())
    try:
        with monkeypatch.context() as stuck:
            ended = asyncio.Event()
            real = module._kill
            stuck.setattr(module, "_work", lambda *_: signal.pause())
            stuck.setattr(module, "STUCK", 0.05)
            stuck.setattr(module, "_kill", lambda pid: (real(pid), ended.set()))
            one.note()
            await ended.wait()
        assert forked and all(gone(pid) for pid in forked)
        one.note()
        await eventually(lambda: bool(looks))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_defect_in_it_ends_nothing_else(monkeypatch: pytest.MonkeyPatch):
    world = Running.on("s/l: a:8 b:8")
    world.run("x: 2x8")
    world.run("y: 1x8")
    looks = list[dict[UnitKey, Estimate]]()
    one = Forecaster(world.decider, lambda found, _: looks.append(found))
    task = asyncio.create_task(one.run())
    try:
        with monkeypatch.context() as broken:
            broken.setattr(module, "Outlook", None)
            tried = asyncio.Event()
            real = module._ended
            broken.setattr(module, "_ended", lambda pid: tried.set() or real(pid))
            one.note()
            await tried.wait()
        one.note()
        await eventually(lambda: bool(looks))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [len(found) for found in looks] == [1]
