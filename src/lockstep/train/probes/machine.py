"""What the container may use of the machine's CPUs, and how often it is held back."""

from __future__ import annotations

import os
from pathlib import Path


class Cpu:
    """The CPUs of this rank's container."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup")) -> None:
        self._group = _group(root)
        self._last = self._stat()

    def cores(self) -> float:
        """Return how many CPUs the ranks of this container may use, divided among them."""
        allowed = float(len(os.sched_getaffinity(0)))
        ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        for group in (self._group, *self._group.parents):
            try:
                limit, period = (group / "cpu.max").read_text().split()
            except (OSError, ValueError):
                continue
            if limit != "max":
                allowed = min(allowed, int(limit) / int(period))
        return round(allowed / ranks, 3)

    def throttled(self) -> float:
        """Return the part of the quota's periods, since the last question, that ran out."""
        now, before = self._stat(), self._last
        self._last = now
        periods = now[0] - before[0]
        return round((now[1] - before[1]) / periods, 4) if periods > 0 else 0.0

    def _stat(self) -> tuple[int, int]:
        try:
            lines = (self._group / "cpu.stat").read_text().splitlines()
            found = dict(line.split() for line in lines)
            return int(found["nr_periods"]), int(found["nr_throttled"])
        except (OSError, ValueError, KeyError):
            return 0, 0


def _group(root: Path) -> Path:
    try:
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                found = root / line[3:].lstrip("/")
                return found if found.is_dir() else root
    except OSError:
        pass
    return root
