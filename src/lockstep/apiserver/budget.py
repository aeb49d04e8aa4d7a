"""What one request may cost: the server answers everybody from one thread.

Work is done on the event loop as long as an estimate says that it is little. Work of which that
cannot be said is done in a fork of the server, which is killed when its time is up: neither RE2
nor the CEL library can be interrupted otherwise. Meanwhile others are served: the request is put
off with :class:`Later`, and decided about anew once the fork has answered, see :func:`decided`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NoReturn, TypeVar

T = TypeVar("T")

PROCESSOR_SECONDS = 0.06
"""Processor time that checking one object may take in the fork."""
PATIENCE_SECONDS = 2.0
"""For how long a fork is waited for where the machine is busy with other things."""
_NICENESS = 10
"""Forks come after the server itself where processors are short."""
_MOST_ANSWERS = 4
"""Forks for one request: each write asks one question, unless its object changes meanwhile."""
_MEMORY = 256 << 20
_CHUNK = 1 << 16
_END = b"\n"


class Costly(Exception):
    """A piece of work that may take long, so it must not be done on the event loop."""


class TooCostly(Exception):
    """A piece of work that took more than a request may cost."""


class Later(Exception):
    """Work that is done in a fork while others are served; then the request is decided anew."""

    def __init__(self, question: bytes, work: Callable[[], bytes]) -> None:
        super().__init__("put off")
        self.question = question
        self.work = work


class _State:
    apart = False
    refused = 0


def require_small(steps: float, limit: float) -> None:
    """Require that work of estimated *steps* is at most *limit*, where the server would wait.

    Raises:
        Costly: when it is not; in a fork there is no limit but the clock.
    """
    if steps > limit and not _State.apart:
        _State.refused += 1
        raise Costly(f"{steps:.0f} steps")


def refused() -> int:
    """Return how often :func:`require_small` has refused: some callers lose the exception."""
    return _State.refused


class Stopwatch:
    """Processor time that this thread has spent since the beginning."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Require that there is time left.

        Raises:
            Costly: when there is none; never in a fork, which has a clock of its own.
        """
        if time.thread_time() > self._end and not _State.apart:
            raise Costly("out of processor time")


_answers: ContextVar[dict[bytes, bytes | None] | None] = ContextVar("answers", default=None)
"""What forks have answered for the request that is decided about; None where there is none."""
_drawn: ContextVar[list[str] | None] = ContextVar("drawn", default=None)
"""What was drawn at random for the request that is decided about."""
_one_at_a_time = asyncio.Semaphore(1)


async def decided(decide: Callable[[], Awaitable[T]], renew: Callable[[], Awaitable[None]]) -> T:
    """Return what *decide* returns, once every question that it put off is answered.

    It decides anew after each answer, of what it reads anew after *renew*.

    Raises:
        TooCostly: when the questions change faster than they are answered.
    """
    known: dict[bytes, bytes | None] = {}
    token, drawn = _answers.set(known), _drawn.set([])
    try:
        for _ in range(_MOST_ANSWERS + 1):
            try:
                return await decide()
            except Later as costly:
                async with _one_at_a_time:
                    known[costly.question] = await _answer(costly.work)
                await renew()
    finally:
        _answers.reset(token)
        _drawn.reset(drawn)
    raise TooCostly


def draw(number: int, make: Callable[[], str]) -> str:
    """Return the *number*-th text, from 0, that was drawn for the request, or draw it now.

    Where it is decided anew it gets the same again: else every answer would be to another question.
    """
    drawn = _drawn.get()
    if drawn is None:
        return make()
    while len(drawn) <= number:
        drawn.append(make())
    return drawn[number]


def is_answered() -> bool:
    """Return whether a fork has answered for the request: then it need not be tried here again."""
    return bool(_answers.get())


async def _answer(work: Callable[[], bytes]) -> bytes | None:
    reading, child = _forked(work)
    try:
        return await asyncio.to_thread(_outcome, reading, child)
    except TooCostly:
        return None


def apart(question: bytes, work: Callable[[], bytes]) -> bytes:
    """Return what *work* returns in a fork of this process.

    The fork has one thread and must not wait for others: *work* may compute, nothing else. What it
    works out depends on *question* alone.

    Raises:
        Later: when a request is being decided about, and has to wait for the fork.
        TooCostly: when it takes more than a request may cost, in time or memory.
    """
    known = _answers.get()
    if known is None:
        return _outcome(*_forked(work))
    if question not in known:
        raise Later(question, work)
    answer = known[question]
    if answer is None:
        raise TooCostly
    return answer


def _forked(work: Callable[[], bytes]) -> tuple[int, int]:
    """Return where the answer of a fork is read, and the fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _in_fork(work, writing)
    os.close(writing)
    return reading, child


def _outcome(reading: int, child: int) -> bytes:
    """Return what a fork answers, and end it.

    Raises:
        TooCostly: when it does not answer in time.
    """
    try:
        answer = _read(reading, time.monotonic() + PATIENCE_SECONDS)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    # The end of an answer is marked: what a killed fork has sent is not one.
    if answer is None or answer[-1:] != _END:
        raise TooCostly
    return answer[:-1]


def _read(reading: int, end: float) -> bytes | None:
    """Return all that comes until the other end closes, or nothing when that is too late."""
    parts: list[bytes] = []
    with select.epoll() as poll:
        poll.register(reading, select.EPOLLIN)
        while True:
            if not poll.poll(max(0.0, end - time.monotonic())):
                return None
            part = os.read(reading, _CHUNK)
            if not part:
                return b"".join(parts)
            parts.append(part)


def _in_fork(work: Callable[[], bytes], writing: int) -> NoReturn:
    try:
        _State.apart = True
        os.nice(_NICENESS)
        _limit()
        answer = work() + _END
        while answer:
            answer = answer[os.write(writing, answer) :]
    except BaseException:
        os._exit(1)
    os._exit(0)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = int(_statm().split()[0])
    most = pages * resource.getpagesize() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # Its default action ends the process in the middle of its work.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)


def _statm() -> str:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # no import in a fork
        return file.read()
