"""How much of the cluster is used, over time."""

from __future__ import annotations

from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.resources.columns import GPU_COLUMN
from lockstep.scheduler.core.util.bitmask import indices_of
from lockstep.sim.result.record import Result, Sample

SAMPLES = 4096
"""Moments kept for charts; beyond it every other one is dropped."""


class Meter:
    """Sums up use between events, and keeps samples of it.

    Only rows that changed since the last event are looked at, as the node table's journal tells.
    """

    def __init__(self, table: NodeTable, result: Result) -> None:
        self._table = table
        self._result = result
        self._now = 0.0
        self._by_queue: dict[str, float] = {}
        self._held = self._asked = 0.0
        self._rows: dict[int, tuple[int, float, float]] = {}
        """Capacity, use and stranded GPUs of each row, as they are in the sums."""
        self._capacity, self._used, self._stranded = 0, 0.0, 0.0
        self._mark: int | None = None
        self._last = Sample(0.0, 0, 0, 0, 0)
        self._stride = self._skipped = 1
        """Of how many moments one is kept, and how many ago the last one was at the next."""

    def use(self, queue: str, gpus: float) -> None:
        """Note that a queue's jobs hold so many GPUs more; a share is a fraction of one."""
        self._by_queue[queue] = self._by_queue.get(queue, 0.0) + gpus
        self._held += gpus

    def ask(self, gpus: float) -> None:
        """Note that jobs that are there want so many GPUs more, held ones included."""
        self._asked += gpus

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

    def sample(self) -> None:
        """Take the state after what happened now."""
        table = self._table
        changed = None if self._mark is None else table.journal.since(self._mark)
        self._mark = table.journal.mark
        for row in range(table.capacity) if changed is None else set(changed):
            self._count(row)
        waiting = max(0.0, round(self._asked - self._held, 6))
        self._last = Sample(self._now, self._capacity, self._used, self._stranded, waiting)
        self._keep(self._last)

    def _count(self, row: int) -> None:
        table = self._table
        capacity, used = 0, 0.0
        if table.live[row] and table.ready[row]:
            capacity = int(table.allocatable[GPU_COLUMN, row])
            used = float(table.used[GPU_COLUMN, row]) + self._shared(row)
        stranded = max(0.0, capacity - used) if used else 0.0
        old = self._rows.get(row, (0, 0.0, 0.0))
        self._rows[row] = (capacity, used, stranded)
        self._capacity += capacity - old[0]
        self._used += used - old[1]
        self._stranded += stranded - old[2]

    def _shared(self, row: int) -> float:
        """Return how much of a node's GPUs is held in shares; a card by what is fuller of it."""
        table, ids = self._table, self._table.columns.card_ids
        found = 0.0
        for card in indices_of(int(table.gpu_shared[row])):
            columns = [ids["compute"][card], ids["memory"][card]]
            there = zip(
                table.used[columns, row].tolist(),
                table.allocatable[columns, row].tolist(),
                strict=True,
            )
            found += max((used / has for used, has in there if has), default=0.0)
        return found

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
            del samples[1::2]  # the first is where the chart begins
            self._skipped += self._stride
            self._stride *= 2
