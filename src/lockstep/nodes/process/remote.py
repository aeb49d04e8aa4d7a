"""Commands beside a container whose input and output belong to a remote client."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from lockstep.nodes.process.channels import STDERR, STDOUT, Size
from lockstep.nodes.process.supervision import SHIM

CHUNK = 32 << 10


@dataclass
class Remote:
    """A running command: what it says, and what is said to it."""

    process: asyncio.subprocess.Process
    terminal: int | None = None
    _readers: list[tuple[int, asyncio.StreamReader]] = field(default_factory=list)
    _transports: list[asyncio.BaseTransport] = field(default_factory=list)

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what it says, and on which channel, until it says no more."""
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(16)
        copying = [asyncio.create_task(_copy(*one, queue)) for one in self._readers]
        try:
            left = len(copying)
            while left:
                channel, data = await queue.get()
                left -= not data
                if data:
                    yield channel, data
        finally:
            for task in copying:
                task.cancel()

    async def say(self, data: bytes) -> None:
        """Give it input; what no longer reads is spared."""
        if self.terminal is not None:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(_write_all, self.terminal, data)
        elif self.process.stdin is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self.process.stdin.write(data)
                await self.process.stdin.drain()

    def close_input(self) -> None:
        """Tell it that there is no more input."""
        if self.terminal is None and self.process.stdin is not None:
            self.process.stdin.close()

    def resize(self, size: Size) -> None:
        """Tell its terminal how large it is."""
        if self.terminal is not None:
            window = struct.pack("HHHH", size.height, size.width, 0, 0)
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, window)

    async def exit_code(self) -> int:
        """Return how it ended, once it has; a signal counts as 128 and its number."""
        code = await self.process.wait()
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        """Kill it unless it has ended, and let go of what it used."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        for transport in self._transports:
            transport.close()
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None


async def run(orders: dict[str, Any], *, stdin: bool, tty: bool) -> Remote:
    """Start the command of *orders* with pipes, or in a terminal of its own.

    Raises:
        OSError: when the machine has no process or no terminal left.
    """
    told = {**orders, "do": "join", "terminal": tty}
    if tty:
        return await _in_terminal(told)
    process = await _start(
        told,
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None  # noqa: S101  both were asked for
    assert process.stderr is not None  # noqa: S101
    return Remote(process, None, [(STDOUT, process.stdout), (STDERR, process.stderr)])


async def _in_terminal(orders: dict[str, Any]) -> Remote:
    terminal, other_end = pty.openpty()
    try:
        process = await _start(orders, other_end, other_end, other_end)
    except OSError:
        os.close(terminal)
        raise
    finally:
        os.close(other_end)
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(terminal), "rb", 0)
    )
    return Remote(process, terminal, [(STDOUT, reader)], [transport])


async def _start(
    orders: dict[str, Any], stdin: int, stdout: int, stderr: int
) -> asyncio.subprocess.Process:
    """Start a shim that reads its orders elsewhere than from its input, which is the command's."""
    reading, writing = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *SHIM,
            str(reading),
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
            pass_fds=(reading,),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        await asyncio.to_thread(pipe.write, json.dumps(orders).encode())
    return process


async def _copy(
    channel: int, reader: asyncio.StreamReader, queue: asyncio.Queue[tuple[int, bytes]]
) -> None:
    data = b"more"
    while data:
        try:
            data = await reader.read(CHUNK)
        except OSError:
            # A terminal whose last user is gone answers with an error.
            data = b""
        await queue.put((channel, data))


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
