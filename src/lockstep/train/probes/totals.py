"""What a process has measured: sums that grow, a window over them, a file of both."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter, defaultdict, deque
from typing import Any

Json = dict[str, Any]

WINDOW = 30.0
"""Seconds of a slot; what is told spans one to two slots."""
LINES = 3
"""Lines of code that are told for each phase."""


class Totals:
    """Sums of one process; threads add to it."""

    def __init__(self, clock: Any = time.monotonic) -> None:
        self._clock = clock
        self.facts: Json = {}
        """What is not summed up: settings of the loader, the last profile."""
        self.steps: deque[float] = deque(maxlen=400)
        """Seconds of the last steps."""
        self.reset()

    def reset(self) -> None:
        """Begin anew, as a process that was forked does, or after the first steps."""
        self.sums: defaultdict[str, float] = defaultdict(float)
        self.lines: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()
        self._slots: deque[tuple[float, dict[str, float]]] = deque([(self._clock(), {})], 2)
        self.steps.clear()

    def add(self, name: str, value: float) -> None:
        """Add *value* to the sum *name*."""
        self.sums[name] += value

    def note(self, phase: str, line: str) -> None:
        """Count one sample of *phase*, taken at *line* of the user's code."""
        self.sums["at:" + phase] += 1
        self.lines.setdefault(phase, Counter())[line] += 1

    def sheet(self) -> Json:
        """Return what happened in the window."""
        with self._lock:
            now = self._clock()
            begun, before = self._slots[0]
            if now - self._slots[-1][0] >= WINDOW:
                self._slots.append((now, dict(self.sums)))
            sums = {
                name: round(value - before.get(name, 0.0), 6)
                for name, value in list(self.sums.items())
                if value > before.get(name, 0.0)
            }
            lines = {
                phase: [line for line, _ in counts.most_common(LINES)]
                for phase, counts in list(self.lines.items())
            }
        return {
            "begun": round(begun, 3),
            "wall": round(now - begun, 3),
            "sums": sums,
            "lines": lines,
            "steps": sorted(self.steps),
            **self.facts,
        }


class Sheet:
    """The file in which a process tells its totals."""

    def __init__(self, directory: str, totals: Totals, kind: str) -> None:
        local = os.environ.get("LOCAL_RANK", "0")
        self._path = f"{directory}/{local}-{kind}-{os.getpid()}.json"
        self._totals = totals

    def write(self) -> None:
        """Write it whole, or leave the one that is there."""
        told = self._totals.sheet()
        told["steps"] = _quantiles(told["steps"])
        told["rank"] = int(os.environ.get("RANK", "0"))
        draft = f"{self._path}.{threading.get_ident()}.new"
        try:
            with open(draft, "w") as file:  # noqa: PTH123
                json.dump(told, file)
            os.replace(draft, self._path)  # noqa: PTH105
        except OSError:  # the launcher has ended
            return


def _quantiles(values: list[float]) -> list[float]:
    """Return least, quartiles and largest."""
    if not values:
        return []
    last = len(values) - 1
    return [round(values[round(last * part)], 6) for part in (0, 0.25, 0.5, 0.75, 1)]
