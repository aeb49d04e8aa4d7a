"""Shims from the node's side: starting one, finding one again, signalling, and joining its side."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lockstep
from lockstep.nodes.process.home import RunHome
from lockstep.nodes.process.shim.start import KILL_SIGNAL, STOP_SIGNAL

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    "from lockstep.nodes.process.shim.main import main; main()"
)
SHIM = [sys.executable, "-S", "-E", "-P", "-c", _BOOT, str(Path(lockstep.__file__).parent.parent)]
START_TIMEOUT = 30.0
MOST_OUTPUT = 10 * 1024


class StartError(Exception):
    """A container's process could not be started; the message says why."""


class Supervised:
    """A living shim and the container's process that it watches over."""

    def __init__(self, shim: int, pid: int, started: float) -> None:
        self.pid, self.started = pid, started
        self._pidfd: int | None = os.pidfd_open(shim)
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    def launch(cls, home: RunHome, orders: dict[str, Any]) -> Supervised:
        """Start a container; blocks for the few milliseconds that it takes.

        Raises:
            StartError: when its process could not be started.
        """
        lock = home.lock()
        try:
            child = subprocess.Popen(  # noqa: S603  the arguments are our own
                SHIM,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                pass_fds=(lock,),
                start_new_session=True,
            )
        finally:
            os.set_inheritable(lock, False)
        try:
            answer = _converse(child, {**orders, "lock": lock, "do": "run"})
        finally:
            os.close(lock)
        if "error" in answer:
            child.wait()
            raise StartError(answer["error"])
        supervised = cls(answer["shim"], answer["pid"], answer["started"])
        supervised._child = child
        return supervised

    @classmethod
    def adopt(cls, home: RunHome) -> Supervised | None:
        """Return the shim that still watches over *home*; none when it is gone."""
        noted = home.read("run")
        if noted is None:
            return None
        try:
            found = cls(noted["shim"], noted["pid"], noted["started"])
        except ProcessLookupError:
            return None
        if home.alive:
            return found
        found.close()
        return None

    def on_end(self, call: Callable[[], None]) -> None:
        """Call *call* once, when the shim has ended."""
        loop = asyncio.get_running_loop()
        fd = self._pidfd
        if fd is None:
            return

        def ended() -> None:
            loop.remove_reader(fd)
            self.close()
            call()

        loop.add_reader(fd, ended)

    def stop(self) -> None:
        """Ask the container to end (SIGTERM to its process group)."""
        self._signal(STOP_SIGNAL)

    def kill(self) -> None:
        """Kill everything of the container."""
        self._signal(KILL_SIGNAL)

    def _signal(self, number: signal.Signals) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Let go of the shim; it goes on."""
        if self._child is not None:
            self._child.poll()
            self._child = None
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def detach(self) -> None:
        """Stop following the shim without waiting for its end."""
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
        self.close()


def _converse(child: subprocess.Popen[bytes], orders: dict[str, Any]) -> dict[str, Any]:
    """Give the shim its orders and return its answer."""
    assert child.stdin is not None  # noqa: S101  both were asked for
    assert child.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError), child.stdin:
        child.stdin.write(json.dumps(orders).encode())
    with child.stdout:
        ready, _, _ = select.select([child.stdout], [], [], START_TIMEOUT)
        line = child.stdout.readline() if ready else b""
    if not line:
        child.kill()
        child.wait()
        return {"error": "the process that watches over the container did not start"}
    answer: dict[str, Any] = json.loads(line)
    return answer


async def run_beside(orders: dict[str, Any], timeout: float) -> tuple[int, str]:
    """Run a command beside a container; return its exit code and the beginning of its output.

    Raises:
        TimeoutError: when it takes longer than *timeout*; it is killed then.
    """
    process = await asyncio.create_subprocess_exec(
        *SHIM,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd="/",
        env={"PATH": os.defpath},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout):
            output = await _exchange(process, {**orders, "do": "join"})
            return await process.wait(), output
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _exchange(process: asyncio.subprocess.Process, orders: dict[str, Any]) -> str:
    assert process.stdin is not None  # noqa: S101  both were asked for
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(json.dumps(orders).encode())
    process.stdin.close()
    kept = b""
    while data := await process.stdout.read(65536):
        kept = (kept + data)[:MOST_OUTPUT]
    return kept.decode(errors="replace")
