"""Working out when what waits will start, beside the scheduler and not in its way.

The future is played in a process forked for it: what is there at that moment is its copy, at the
price of a few milliseconds however large the cluster is, and bindings and watches go on meanwhile.
Long queues are looked at less often: between two looks lies a multiple of what the last one took.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Literal, NoReturn

import msgspec

from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.model.decisions import Estimate
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.runtime.clock import NotConverged
from lockstep.scheduler.core.runtime.start_estimates import StartEstimates

log = logging.getLogger(__name__)

PACE = 0.3
"""Seconds without a change after which a look is taken."""
PATIENCE = 5.0
"""Seconds after which one is taken although changes go on."""
SPARING = 10
"""Times as long as a look took until the next one: it costs at most a tenth of a processor."""
LONGEST_LOOK = 30.0
"""Seconds after which a look is broken off; a workload further back in line learns only how
far it came."""
TOO_FAR = "looking further ahead takes too long"
STUCK = LONGEST_LOOK + 15.0
"""Seconds after which a look is ended from outside: it was forked beside threads, and one of them
may have held a lock that no thread releases there."""
NICE = 19
LATE = 1.0
"""Seconds by which a gang may start later than was told before it is looked again."""
RETRY = 30.0
"""Seconds after which it is looked again, at the earliest, if a look came to no good end."""

Found = Callable[[dict[WorkloadKey, Estimate], float], None]
"""Takes what was found, and the Unix time for which it holds."""


class _Line(msgspec.Struct, array_like=True):
    """What the forked process says of one workload."""

    kind: Literal["Gang", "Pod"]
    namespace: str
    name: str
    at: float | None
    why: str
    not_before: float | None


class Forecaster:
    """Looks ahead whenever something has changed, at a pace that the machine bears."""

    def __init__(self, decider: Decider, found: Found) -> None:
        self._decider = decider
        self._found = found
        self._wake = asyncio.Event()
        self._past_at: float | None = None
        """Unix time at which an estimate that was told will lie in the past."""

    def note(self) -> None:
        """Take note that something has changed."""
        self._wake.set()

    async def run(self) -> None:
        """Look ahead until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._change()
            await self._calm()
            if not len(self._decider.pending_queue):
                continue
            started, now = loop.time(), time.time()
            workloads = self._decider.cluster.workloads
            # The line is brought up to date by decisions: a workload in it may have gone since.
            waiting = {
                key: workloads[key].uid
                for key in self._decider.pending_queue.all()
                if key in workloads
            }
            estimates, trouble = await self._look(now)
            if trouble:
                log.error("looking ahead broke off: %s", trouble)
                untold = Estimate(None, f"looking ahead broke off: {trouble}")
                estimates = dict.fromkeys(waiting, untold) | estimates
            # What has gone meanwhile, and come again by the same name, is not what was looked at.
            there = {
                k: one for k, one in estimates.items() if _same(workloads.get(k), waiting.get(k))
            }
            self._found(there, now)
            told = [one.at for one in there.values() if one.at is not None]
            self._past_at = min((at for at in told if at > now), default=None)
            pause = (loop.time() - started) * SPARING
            if trouble:
                self.note()
                pause = max(pause, RETRY)
            await asyncio.sleep(pause)

    async def _change(self) -> None:
        """Wait until something has changed, or until the first estimate lies in the past: what was
        to end by then has not, and an estimate may not stay in the past.
        """
        until = self._past_at
        left = None if until is None else max(0.0, until + LATE - time.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._wake.wait()
        if until is not None and until <= time.time():
            self._past_at = None

    async def _calm(self) -> None:
        """Let a burst of changes pass, if it does not last: while it lasts, others need the CPU."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + PATIENCE
        while self._wake.is_set() and loop.time() < latest:
            self._wake.clear()
            await asyncio.sleep(PACE)
        self._wake.clear()

    async def _look(self, now: float) -> tuple[dict[WorkloadKey, Estimate], str]:
        """Return what a forked process finds out about the present state.

        Beside it stands why that is not all, where the process came to no good end.
        """
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:  # such as no memory for another process
            os.close(reading)
            return {}, f"no process for it: {error.strerror}"
        else:
            if not pid:
                _work(self._decider, now, writing)
        finally:
            os.close(writing)
        try:
            async with asyncio.timeout(STUCK):
                text = await _read(reading)
                # Taking its memory apart may take it a while, and nothing waits for that.
                while (code := _exit_code(pid)) is None:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(PACE)
        except TimeoutError:
            _kill(pid)
            return {}, f"it took more than {STUCK:g} s"
        except BaseException:
            _kill(pid)
            raise
        whole, _, _ = text.rpartition(b"\n")  # it may have been killed in the middle of a line
        lines = (msgspec.json.decode(line, type=_Line) for line in whole.splitlines())
        found = {
            WorkloadKey(n.kind, n.namespace, n.name): Estimate(n.at, n.why, n.not_before)
            for n in lines
        }
        return found, _in_words(code)


def _same(workload: Workload | None, uid: str | None) -> bool:
    return workload is not None and workload.uid == uid


def _exit_code(pid: int) -> int | None:
    """Return how a forked process ended, less than 0 for a signal; None while it has not."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _in_words(code: int) -> str:
    """Return what is wrong about how a process ended; empty where nothing is."""
    if code == -signal.SIGKILL:
        return "it was killed, as happens when memory runs out"
    if code < 0:
        return f"signal {-code} ({signal.strsignal(-code) or 'unknown'}) ended it"
    return "it failed, and the scheduler's log says how; please report it" if code else ""


def _kill(pid: int) -> None:
    """End the forked process, which has nothing to clean up."""
    with contextlib.suppress(ChildProcessError):
        if _exit_code(pid) is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


async def _read(descriptor: int) -> bytes:
    """Return all that comes out of a pipe."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        return await reader.read()
    finally:
        transport.close()


def _work(decider: Decider, now: float, pipe: int) -> NoReturn:
    """Play the future in the forked process and write down what is found; never return."""
    status = 1
    try:
        _cut_loose(pipe)
        outlook = StartEstimates(decider, now)
        _play(outlook)
        with os.fdopen(pipe, "wb") as out:
            for key, one in outlook.found.items():
                out.write(msgspec.json.encode(_Line(*key, one.at, one.why, one.not_before)) + b"\n")
        status = 0
    except BaseException:
        log.exception("looking ahead failed")
    finally:
        os._exit(status)


def _play(outlook: StartEstimates) -> None:
    """Play as far as time allows; what starts later is told that it does."""
    deadline, parent = time.monotonic() + LONGEST_LOOK, os.getppid()
    try:
        while outlook.advance():
            if time.monotonic() > deadline:
                outlook.break_off(TOO_FAR)
            elif os.getppid() != parent:
                return
    except NotConverged as error:
        log.exception("looking ahead broke off")
        outlook.break_off(f"looking ahead broke off ({error}); please report it")


def _cut_loose(pipe: int) -> None:
    """Share nothing with the scheduler from here on but memory and the pipe."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    # Else its sockets would outlive a scheduler that is killed, and keep its ports taken.
    os.closerange(3, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()  # looking for garbage would touch, and so copy, all that there is
    os.nice(NICE)
