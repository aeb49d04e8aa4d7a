"""The clock that leases are in, and waiting on words that processes share (Linux futexes)."""

from __future__ import annotations

import ctypes
import platform
import time
from typing import Final, Protocol

_FUTEX: Final = {"x86_64": 202, "aarch64": 98}
_WAIT_UNTIL: Final = 9
_WAKE: Final = 1
_ANY: Final = 0xFFFFFFFF
SECOND: Final = 1_000_000_000


class Clock(Protocol):
    """Time in nanoseconds, and words by the number under which all processes know them."""

    def now(self) -> int:
        """Return the time."""

    def wait(self, word: ctypes.c_uint32, expected: int, until: int, number: int) -> None:
        """Return when *word* is not *expected* or was woken, or at the time *until*."""

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        """Wake those that wait on *word*."""


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class MonotonicClock:
    """The machine's own."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._number = _FUTEX.get(platform.machine())

    def now(self) -> int:
        """Return the time since the boot."""
        return time.monotonic_ns()

    def wait(self, word: ctypes.c_uint32, expected: int, until: int, number: int) -> None:
        """Return when *word* is not *expected* or was woken, or at the time *until*."""
        if self._number is None:
            time.sleep(max(0.0, (until - self.now()) / SECOND))
            return
        end = _Timespec(*divmod(until, SECOND))
        self._libc.syscall(
            self._number,
            ctypes.byref(word),
            _WAIT_UNTIL,
            ctypes.c_uint32(expected),
            ctypes.byref(end),
            None,
            ctypes.c_uint32(_ANY),
        )

    def wake(self, word: ctypes.c_uint32, number: int) -> None:
        """Wake those that wait on *word*."""
        if self._number is not None:
            self._libc.syscall(self._number, ctypes.byref(word), _WAKE, 1 << 30, None, None, 0)
