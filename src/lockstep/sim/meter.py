"""How much of the cluster is used, over time."""

from __future__ import annotations

import numpy as np

from lockstep.scheduler.core.nodes import NodeTable
from lockstep.scheduler.core.resources import GPU_COLUMN
from lockstep.sim.record import Result, Sample

SAMPLES = 4096
"""Moments kept for charts; beyond it every other one is dropped."""


class Meter:
    """Sums up use between events, and keeps samples of it."""

    def __init__(self, table: NodeTable, result: Result) -> None:
        self._table = table
        self._result = result
        self._now = 0.0
        self._by_queue: dict[str, int] = {}
        self._last = Sample(0.0, 0, 0, 0, 0)
        self._stride = self._skipped = 1

    def use(self, queue: str, gpus: int) -> None:
        """Note that a queue's jobs hold so many GPUs more."""
        self._by_queue[queue] = self._by_queue.get(queue, 0) + gpus

    def advance(self, now: float) -> None:
        """Count what was used from the last moment until *now*."""
        passed, self._now = now - self._now, now
        if passed <= 0:
            return
        total, last = self._result.total, self._last
        total.capacity += passed * last.capacity
        total.used += passed * last.used
        total.free += passed * (last.capacity - last.used)
        total.stranded += passed * last.stranded
        if last.waiting:
            total.pressed_capacity += passed * last.capacity
            total.pressed_used += passed * last.used
        use = self._result.queue_use
        for queue, gpus in self._by_queue.items():
            use[queue] = use.get(queue, 0.0) + passed * gpus

    def sample(self, waiting: int) -> None:
        """Take the state after what happened now."""
        table = self._table
        usable = table.live & table.ready
        capacity = np.where(usable, table.allocatable[GPU_COLUMN], 0)
        used = np.where(usable, table.used[GPU_COLUMN], 0)
        free = capacity - used
        self._last = Sample(
            self._now,
            int(capacity.sum()),
            int(used.sum()),
            int(free[used > 0].sum()),
            waiting,
        )
        self._keep(self._last)

    def _keep(self, sample: Sample) -> None:
        samples = self._result.samples
        if samples and samples[-1].time == sample.time:
            samples[-1] = sample
            return
        if self._skipped < self._stride:
            self._skipped += 1
            return
        self._skipped = 1
        samples.append(sample)
        if len(samples) >= SAMPLES:
            del samples[::2]
            self._stride *= 2
