"""Running one part in the foreground: logging, signals, and the leash to a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.kube.errors import ApiError, ConfigError

log = logging.getLogger(__name__)

STDIN = 0


class How(Protocol):
    """How a part runs in the foreground."""

    @property
    def leashed(self) -> bool:
        """Return whether it ends when standard input is closed."""
        ...

    @property
    def verbose(self) -> bool:
        """Return whether it logs more."""
        ...


def announce(line: str) -> None:
    """Print the line that says that the part works; it begins with ``ready``."""
    print(line if line.startswith("ready") else f"ready {line}".rstrip(), flush=True)


def serve(part: Coroutine[Any, Any, Any], how: How) -> None:
    """Run *part* until it ends, or until SIGINT, SIGTERM or the end of the leash cancels it.

    A part on a leash has a supervisor that holds the other end of its standard input: however the
    supervisor ends, the part notices and ends too.

    Raises:
        BadInput: when it cannot start from what it was given, in one line.
        CommandFailed: when it cannot start or go on for another reason, in one line.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if how.verbose else logging.INFO,
        format="%(asctime)s %(levelname).1s %(name)s: %(message)s",
    )
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(until_told(part, (signal.SIGINT, signal.SIGTERM), leashed=how.leashed))
    except KeyboardInterrupt:
        raise SystemExit(0) from None
    except ConfigError as error:
        raise BadInput(f"{error}") from error
    except (OSError, ApiError) as error:
        log.debug("ended by an error", exc_info=True)
        raise CommandFailed(f"{error}") from error


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def until_told(
    part: Coroutine[Any, Any, Any],
    signals: Iterable[signal.Signals],
    *,
    leashed: bool,
    again: Callable[[], None] = lambda: None,
) -> None:
    """Run *part* until it ends, or one of the signals or the end of the leash cancels it.

    Each further signal calls *again*.
    """
    task = asyncio.ensure_future(part)
    loop = asyncio.get_running_loop()
    told = False

    def stop() -> None:
        nonlocal told
        if told:
            again()
        told = True
        task.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop)
    if leashed:
        watch_leash(loop, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise


def watch_leash(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Call *stop* when the other end of standard input is closed."""
    os.set_blocking(STDIN, False)
    loop.add_reader(STDIN, _on_leash, loop, stop)


def _on_leash(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    with contextlib.suppress(BlockingIOError):
        if os.read(STDIN, 4096):
            return
        loop.remove_reader(STDIN)
        log.warning("the supervisor is gone; ending")
        stop()
