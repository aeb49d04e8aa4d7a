"""When a process that ended is started again."""

from __future__ import annotations

from dataclasses import dataclass

STEADY = 5.0
"""A run of this many seconds ends a crash loop."""
FIRST_DELAY = 0.1
LONGEST_DELAY = 15.0
LOOP = 3
"""As many short runs in a row are called a crash loop."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do about a process that ended."""

    short_runs: int
    """Ends in a row, each soon after the start, including this one."""
    delay: float
    """Seconds until it is started again."""

    @property
    def looping(self) -> bool:
        """Return whether to call it a crash loop."""
        return self.short_runs >= LOOP


def after_end(short_runs: int, ran_for: float) -> Verdict:
    """Judge a process that ended after *ran_for* seconds, with *short_runs* such ends before.

    The first end is answered at once, so that a killed part is back within a second;
    a part that keeps ending waits twice as long each time.
    """
    if ran_for >= STEADY:
        short_runs = 0
    delay = FIRST_DELAY * 2 ** (short_runs - 1) if short_runs else 0.0
    return Verdict(short_runs + 1, min(LONGEST_DELAY, delay))


def how_it_ended(code: int) -> str:
    """Return an exit code in words: ``exit code 1``, or the signal's name for a negative one."""
    if code >= 0:
        return f"exit code {code}"
    import signal

    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
