"""One supervised process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lockstep.cli.failure import CommandFailed
from lockstep.cli.up import restart
from lockstep.cli.up.logfile import LogFile, last_lines

LINE_LIMIT = 2**20
LAST_WORDS = 0.2
"""Seconds in which the output of a process that ended is still read."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of Lockstep that runs as a process."""

    name: str
    command: tuple[str, ...]
    """What to execute; it prints a line that begins with ``ready`` once it works."""
    grace: float = 10.0
    """Seconds between being told to end and being killed."""


class Child:
    """Keeps one part running from its creation until it is told to stop.

    The part's standard input is the read end of a pipe that only this process holds open: when
    this process is gone, however it went, the part reads the end and ends too.
    """

    def __init__(self, part: Part, log_dir: Path, *, lock: int, say: Callable[[str], None]) -> None:
        self.part = part
        self.ready = asyncio.Event()
        self.log_path = log_dir / f"{part.name}.log"
        self._log = LogFile(self.log_path)
        self._lock = lock
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._never_ready = True
        self.task = asyncio.create_task(self._run(), name=part.name)
        """Ends after :meth:`stop`, or with a ``CommandFailed`` when the part ends again and again
        without ever having been ready."""

    async def stop(self) -> None:
        """End the part: ask, wait for its grace, then kill; returns when it is gone."""
        self._stopping.set()
        self._signal(signal.SIGTERM)
        done, _ = await asyncio.wait([self.task], timeout=self.part.grace)
        if not done:
            self._say(f"{self.part.name} did not end in {self.part.grace:.0f} s; killing it")
            self.kill()
            await asyncio.wait([self.task])
        self._log.close()

    def kill(self) -> None:
        """End the part at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _run(self) -> None:
        short_runs = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            verdict = restart.after_end(short_runs, time.monotonic() - started)
            short_runs = verdict.short_runs
            self._report(code, verdict)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), verdict.delay)

    async def _run_once(self) -> int:
        leash, leash_holder = os.pipe()
        output, output_end = os.pipe()
        try:
            # Pipes of our own: asyncio's would make wait() last until each process that inherited
            # the output, such as a pod that outlives its node, has ended too.
            self._process = process = await asyncio.create_subprocess_exec(
                *self.part.command,
                stdin=leash,
                stdout=output_end,
                stderr=output_end,
                start_new_session=True,
                pass_fds=(self._lock,),
            )
        except BaseException:
            os.close(output)
            os.close(leash_holder)
            raise
        finally:
            os.close(leash)
            os.close(output_end)
        with os.fdopen(leash_holder, "wb"):
            if self._stopping.is_set():
                self._signal(signal.SIGTERM)
            pump = asyncio.create_task(self._pump(output))
            code = await process.wait()
            await asyncio.wait([pump], timeout=LAST_WORDS)
            pump.cancel()
            self.ready.clear()
            return code

    async def _pump(self, output: int) -> None:
        reader = asyncio.StreamReader(limit=LINE_LIMIT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(output, "rb")
        )
        try:
            while line := await _line(reader):
                self._log.write(line)
                if line.startswith(b"ready"):
                    self._never_ready = False
                    self.ready.set()
        finally:
            transport.close()

    def _report(self, code: int, verdict: restart.Verdict) -> None:
        ended = f"{self.part.name} ended ({restart.how_it_ended(code)})"
        if verdict.looping and self._never_ready:
            tail = last_lines(self.log_path, 5)
            raise CommandFailed(
                f"{ended} {verdict.short_runs} times and was never ready"
                + "".join(f"\n  {line}" for line in tail),
                f"its log is {self.log_path}",
            )
        if verdict.looping:
            self._say(
                f"{ended} {verdict.short_runs} times in a row; next try in {verdict.delay:.1f} s; "
                f"its log is {self.log_path}"
            )
        else:
            self._say(f"{ended}; starting it again")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as rest:
        return rest.partial
    except asyncio.LimitOverrunError as overrun:
        return await reader.readexactly(overrun.consumed)
