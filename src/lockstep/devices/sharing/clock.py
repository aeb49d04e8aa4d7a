"""The clock that leases are in, bells, and words that processes share (Linux futexes)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import select
import time
from collections.abc import Iterable
from typing import Final, Protocol

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}
_WAKE: Final = 1
SECOND: Final = 1_000_000_000


class Clock(Protocol):
    """Time in nanoseconds, and words by the number under which all processes know them."""

    def now(self) -> int:
        """Return the time."""

    def heard(self) -> int:
        """Return what tells a bell that rings from now on."""

    def wait(self, bells: Iterable[int], heard: int, until: int) -> None:
        """Return when a bell rang since it was *heard*, or at the time *until*."""

    def ring(self) -> None:
        """End a wait of this process."""

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        """Wake those that wait on *word*."""


class MonotonicClock:
    """The machine's own."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._number = _FUTEX.get(platform.machine())
        self._own = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def now(self) -> int:
        """Return the time since the boot."""
        return time.monotonic_ns()

    def heard(self) -> int:
        """Return nothing that matters: bells ring until they are drained."""
        return 0

    def wait(self, bells: Iterable[int], heard: int, until: int) -> None:
        """Return when one of *bells* rang, or at the time *until*."""
        poll = select.poll()
        for one in (self._own, *bells):
            poll.register(one, select.POLLIN)
        left = until - self.now()
        if left > 0:
            poll.poll(left / 1e6)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._own)

    def ring(self) -> None:
        """End a wait of this process."""
        os.eventfd_write(self._own, 1)

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        """Wake those that wait on *word*."""
        if self._number is not None:
            self._libc.syscall(self._number, ctypes.byref(word), _WAKE, 1 << 30, None, None, 0)
