"""Watching over the container: output, signals, orphans, and the end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal

from lockstep.nodes.process.shim.log import Log
from lockstep.nodes.process.shim.start import KILL_SIGNAL, STOP_SIGNAL

CHUNK = 65536


def children() -> list[int]:
    """Return the processes whose parent is this one."""
    me, found = os.getpid(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
    return found


def kill_all() -> None:
    """Kill everything that descends from here: orphans come back as children until none is left."""
    while remaining := children():
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in remaining:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


class Watch:
    """The shim's loop: output to the log, signals to the container, until its process ends.

    It is made before the container starts, so that no signal is missed.
    """

    def __init__(self, log: Log, streams: dict[int, str]) -> None:
        self.pid = 0
        self.log = log
        self.status: int | None = None
        self.selector = selectors.DefaultSelector()
        for fd, name in streams.items():
            self.selector.register(fd, selectors.EVENT_READ, name)
        wake, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.selector.register(wake, selectors.EVENT_READ, "signal")
        for number in (STOP_SIGNAL, KILL_SIGNAL, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)

    def run(self, pid: int) -> int:
        """Return the wait status of the process *pid*, once nothing of the container is left."""
        self.pid = pid
        self.reap()
        while self.status is None:
            self.turn(None)
        kill_all()
        while self.turn(0):
            pass
        return self.status

    def turn(self, timeout: float | None) -> bool:
        """Handle what is ready; tell whether any output came."""
        any_output = False
        for key, _ in self.selector.select(timeout):
            if key.data == "signal":
                self.signals(os.read(key.fd, 256))
                continue
            data = os.read(key.fd, CHUNK)
            if data:
                any_output = True
                self.log.add(key.data, data)
            else:
                self.selector.unregister(key.fd)
        return any_output

    def signals(self, numbers: bytes) -> None:
        """Pass on a request to stop, obey one to kill, and reap."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                if STOP_SIGNAL in numbers:
                    os.killpg(self.pid, signal.SIGTERM)
                if KILL_SIGNAL in numbers:
                    os.kill(self.pid, signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        """Take leave of processes that ended; the container's own gives the result."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.pid:
                    self.status = status
