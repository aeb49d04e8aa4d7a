"""Looking ahead in a process of its own: what it finds comes back, and nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from msgspec.structs import replace
from tests.support.running import Running
from tests.support.waiting import eventually

from lockstep.api.names import RUNTIME_ANNOTATION
from lockstep.scheduler import forecaster as module
from lockstep.scheduler.core.model.decisions import Estimate
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.forecaster import Forecaster

KNOWN = "gang x has no expected run time"
X, Y = (WorkloadKey("Gang", "default", name) for name in "xy")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACE", 0.001)
    monkeypatch.setattr(module, "SPARING", 0)
    monkeypatch.setattr(module, "RETRY", 0.001)


@pytest.fixture
def world() -> Running:
    """Return two nodes, a gang that holds both for nobody knows how long, and one that waits."""
    running = Running.on("s/l: a:8 b:8")
    running.run("x: 2x8")
    running.run("y: 1x8")
    return running


class Looking:
    """A forecaster at work, and what each of its looks found."""

    def __init__(self, world: Running) -> None:
        self.looks: list[dict[WorkloadKey, Estimate]] = []
        self.forecaster = Forecaster(world.decider, lambda found, _: self.looks.append(found))

    async def see(self) -> None:
        """Let it know of a change, and wait for what it finds."""
        self.forecaster.note()
        await eventually(lambda: bool(self.looks))

    @property
    def why(self) -> str:
        """What gang y, which waits, was told last of why it has no estimate."""
        last = self.looks[-1] if self.looks else {}
        return last[Y].why if Y in last else ""

    async def __aenter__(self) -> Looking:
        self._task = asyncio.create_task(self.forecaster.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


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


async def test_findings_come_back_and_the_state_stays_unchanged(world: Running, forked: list[int]):
    before = world.places("x")
    async with Looking(world) as looking:
        await looking.see()
    assert looking.looks[0] == {Y: Estimate(None, KNOWN)}
    assert world.places("x") == before
    assert forked and all(gone(pid) for pid in forked)


async def test_no_estimate_stays_in_the_past(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LATE", 0.01)
    running = Running.on("s/l: a:8 b:8")
    running.run("x: 2x8")
    running.run("y: 1x8")
    lasts = time.time() + 3.0 - running.cluster.workloads[X].bound[0].since
    running.annotate("x", {RUNTIME_ANNOTATION: str(lasts)})
    async with Looking(running) as looking:
        await looking.see()
        await eventually(lambda: looking.why == "gang x runs longer than expected")


async def test_a_namesake_does_not_get_another_gangs_findings(
    world: Running, monkeypatch: pytest.MonkeyPatch
):
    real, gang = os.fork, world.gangs["y"].gang

    def fork() -> int:
        pid = real()
        if pid:  # it goes, and comes again, while it is looked ahead
            meta = replace(gang.metadata, uid="another")
            world.cluster.set_gang(replace(gang, metadata=meta))
        return pid

    async with Looking(world) as looking:
        with monkeypatch.context() as once:
            once.setattr(os, "fork", fork)
            await looking.see()
        assert looking.looks[0] == {}
        looking.forecaster.note()
        await eventually(lambda: looking.why == KNOWN)


async def test_a_gang_gone_since_the_last_decision_is_left_out(world: Running):
    drawn = world.gangs["y"]
    world.cluster.remove_gang("default", "y")
    for pod in drawn.pods:
        world.cluster.remove_pod("default", pod.metadata.name)
    assert Y in world.decider.pending_queue and Y not in world.cluster.workloads
    async with Looking(world) as looking:
        await looking.see()
        assert looking.looks[0] == {}


async def test_without_memory_for_it_the_scheduler_goes_on(
    world: Running, monkeypatch: pytest.MonkeyPatch
):
    def refuse() -> int:
        raise OSError(12, "Cannot allocate memory")

    async with Looking(world) as looking:
        with monkeypatch.context() as full:
            full.setattr(os, "fork", refuse)
            await looking.see()
        assert looking.why.endswith("broke off: no process for it: Cannot allocate memory")
        await eventually(lambda: looking.why == KNOWN)  # it tries again by itself


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (signal.SIGKILL, "it was killed, as happens when memory runs out"),
        (signal.SIGTERM, "signal 15 (Terminated) ended it"),
    ],
)
async def test_one_that_dies_is_told_and_the_next_is_taken(
    world: Running,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    how: signal.Signals,
    words: str,
):
    async with Looking(world) as looking:
        with monkeypatch.context() as deadly:
            deadly.setattr(module, "_play", lambda _: os.kill(os.getpid(), how))
            await looking.see()
        assert looking.why == f"looking ahead broke off: {words}"
        assert words in caplog.text
        await eventually(lambda: looking.why == KNOWN)


async def test_a_forecaster_that_dies_while_reporting_leaves_its_reports(
    world: Running, monkeypatch: pytest.MonkeyPatch
):
    world.run("z: 1x8")

    def work(_decider: object, _now: float, pipe: int) -> None:
        os.write(pipe, b'["Gang","default","z",9.0,"",null]\n["Gang","default","y",nu')
        os.kill(os.getpid(), signal.SIGKILL)

    async with Looking(world) as looking:
        monkeypatch.setattr(module, "_work", work)
        await looking.see()
        assert looking.looks[0][WorkloadKey("Gang", "default", "z")] == Estimate(9.0)
        assert "it was killed" in looking.looks[0][Y].why


async def test_a_gang_too_far_back_learns_how_far_was_looked(
    world: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "LONGEST_LOOK", -1.0)
    began = time.time()
    async with Looking(world) as looking:
        await looking.see()
    (estimate,) = looking.looks[0].values()
    assert estimate.at is None
    assert (estimate.at, estimate.why) == (None, module.TOO_FAR)
    assert estimate.not_before is not None
    assert began // 1 <= estimate.not_before <= time.time()


async def test_decisions_without_end_are_told_and_not_fatal(monkeypatch: pytest.MonkeyPatch):
    world = Running.on("s/l: a:8 b:8")
    world.now = time.time()  # by which it is looked ahead
    for text in ("x: 2x8", "y: 2x8", "z: 2x8"):
        world.run(text, annotations={"lockstep.dev/runtime": "600"})
    real = module.StartEstimates
    monkeypatch.setattr(module, "StartEstimates", lambda decider, now: real(decider, now, rounds=1))
    async with Looking(world) as looking:
        await looking.see()
    y, z = (looking.looks[0][WorkloadKey("Gang", "default", name)] for name in "yz")
    for one in (y, z):  # y has its place; who else has to leave for whom is not settled
        assert one.at is None
        assert "after 1 rounds of decisions at" in one.why


async def test_a_stuck_forecaster_is_ended_and_the_next_one_taken(
    world: Running, monkeypatch: pytest.MonkeyPatch, forked: list[int]
):
    async with Looking(world) as looking:
        with monkeypatch.context() as stuck:
            stuck.setattr(module, "_work", lambda *_: signal.pause())
            stuck.setattr(module, "STUCK", 0.05)
            await looking.see()
        assert looking.why == "looking ahead broke off: it took more than 0.05 s"
        await eventually(lambda: looking.why == KNOWN)
    assert all(gone(pid) for pid in forked)


async def test_a_defect_in_it_ends_nothing_else_and_is_told(
    world: Running, monkeypatch: pytest.MonkeyPatch
):
    async with Looking(world) as looking:
        with monkeypatch.context() as broken:
            broken.setattr(module, "StartEstimates", None)
            await looking.see()
        assert "it failed, and the scheduler's log says how" in looking.why
        await eventually(lambda: looking.why == KNOWN)
