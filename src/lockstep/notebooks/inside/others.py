"""What people do in a kernel's pod beside its cells: shells over SSH, editors, programs in them.

Their processes are told from the kernel's by a variable: what is started there from outside has
the pod's own variables, which the keeper takes away from the kernel. They are at work when one of
them is new, when together they compute, or when a user types into one of their terminals; an
editor that is merely open is not.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

COMPUTES: Final = 0.02
"""Part of a core from which on their processes compute; an open editor takes less."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_STANDARD_INPUT: Final = "fd/0"


@dataclass(frozen=True, slots=True)
class _Seen:
    cpu: float
    """Seconds of a core that the process has used."""
    typed: float
    """When its terminal was last read from (Unix time); 0 where it has none."""


def _typed(terminal: str) -> float:
    return Path(terminal).stat().st_atime


@dataclass
class Others:
    """Looks at the processes that bear *mark* in their variables."""

    mark: str
    proc: Path = Path("/proc")
    clock: Callable[[], float] = time.monotonic
    typed: Callable[[str], float] = _typed
    _known: dict[str, bool] = field(default_factory=dict)
    """By process and its start, whether it is one of them."""
    _before: dict[str, _Seen] = field(default_factory=dict)
    _looked: float | None = None

    def at_work(self) -> bool:
        """Return whether something was done since the last call; at the first, if any is there."""
        now, before = self.clock(), self._before
        there = self._look()
        passed = now - self._looked if self._looked is not None else 0.0
        self._before, self._looked = there, now
        if there.keys() - before.keys():
            return True
        used = sum(one.cpu - before[key].cpu for key, one in there.items())
        typed = any(one.typed > before[key].typed for key, one in there.items())
        return typed or used > COMPUTES * passed

    def _look(self) -> dict[str, _Seen]:
        found: dict[str, _Seen] = {}
        present: dict[str, bool] = {}
        for place in self.proc.iterdir():
            if not place.name.isdigit() or int(place.name) == os.getpid():
                continue
            # A process may end at any moment, and others' are not ours to read.
            with contextlib.suppress(OSError, ValueError, IndexError):
                # Its name, in brackets, may hold anything.
                told = (place / "stat").read_text().rpartition(")")[2].split()
                key = f"{place.name}/{told[19]}"
                ours = self._known.get(key)
                if ours is None:
                    ours = self.mark.encode() in (place / "environ").read_bytes().split(b"\0")
                present[key] = ours
                if ours:
                    cpu = (int(told[11]) + int(told[12])) / _TICKS
                    found[key] = _Seen(cpu, self._typed(place))
        self._known = present
        return found

    def _typed(self, place: Path) -> float:
        with contextlib.suppress(OSError):
            terminal = str((place / _STANDARD_INPUT).readlink())
            if terminal.startswith(("/dev/pts/", "/dev/tty")):
                return self.typed(terminal)
        return 0.0
