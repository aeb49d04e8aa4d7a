"""What waits, in order: half-placed gangs, then queue by queue, priority and age within.

Workloads that ask for the same are of one *kind*. In one queue they fit or fail alike, so only the
first of a kind is tried: a queue of thousands of jobs of a few sizes costs a few attempts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush

from lockstep.scheduler.core.model.node_table import natural
from lockstep.scheduler.core.model.workload import Workload, WorkloadKey
from lockstep.scheduler.core.placement.problem import Problem
from lockstep.scheduler.core.state.cluster import Cluster

OrderKey = tuple[bool, int, str, str, tuple[tuple[int, int | str], ...], WorkloadKey]
EquivalenceClass = Hashable
ClassOf = Callable[[Workload], EquivalenceClass | None]
"""Says of which kind a workload is; None where it is blocked by itself and not to be tried."""


class QueueHeap:
    """What waits in one queue, by kind; a kind that was tried in vain is shut until the thaw."""

    def __init__(self) -> None:
        self._kinds: dict[EquivalenceClass, list[OrderKey]] = {}
        self._heads: list[tuple[OrderKey, int, EquivalenceClass]] = []
        self._serial = 0
        """Tells entries of one workload apart, so that kinds are never compared by the heap."""
        self._entry: dict[EquivalenceClass, OrderKey] = {}
        self._shut: set[EquivalenceClass] = set()

    def add(self, order: OrderKey, kind: EquivalenceClass) -> None:
        """Let a workload wait."""
        waiting = self._kinds.setdefault(kind, [])
        heappush(waiting, order)
        if waiting[0] is order and kind not in self._shut:
            self._register(kind)

    def head(
        self, live: Callable[[OrderKey, EquivalenceClass], bool]
    ) -> tuple[WorkloadKey, EquivalenceClass] | None:
        """Return the next workload to try; *live* says whether one still waits like that."""
        while self._heads:
            order, _, kind = self._heads[0]
            if self._entry.get(kind) is not order:
                heappop(self._heads)  # shut, or an older one has come since
                continue
            if live(order, kind):
                return order[-1], kind
            heappop(self._heads)
            del self._entry[kind]
            self._drop_gone(kind, live)
        return None

    def firsts(
        self, live: Callable[[OrderKey, EquivalenceClass], bool]
    ) -> Iterator[tuple[WorkloadKey, EquivalenceClass]]:
        """Yield of each kind that is tried the first workload, as far as it still waits like
        that.
        """
        for kind, order in self._entry.items():
            if live(order, kind):
                yield order[-1], kind

    def shut(self, kind: EquivalenceClass) -> None:
        """Try no more workloads of a kind until the thaw."""
        self._entry.pop(kind, None)
        self._shut.add(kind)

    def thaw(self) -> None:
        """Let everything be tried again."""
        for kind in self._shut:
            if self._kinds.get(kind):
                self._register(kind)
        self._shut.clear()

    def _register(self, kind: EquivalenceClass) -> None:
        order = self._entry[kind] = self._kinds[kind][0]
        self._serial += 1
        heappush(self._heads, (order, self._serial, kind))

    def _drop_gone(
        self, kind: EquivalenceClass, live: Callable[[OrderKey, EquivalenceClass], bool]
    ) -> None:
        waiting = self._kinds[kind]
        heappop(waiting)
        while waiting and not live(waiting[0], kind):
            heappop(waiting)
        if waiting:
            self._register(kind)
        else:
            del self._kinds[kind]


class PendingQueue:
    """The waiting workloads."""

    def __init__(self, cluster: Cluster, kind_of: ClassOf) -> None:
        self._cluster = cluster
        self._kind_of = kind_of
        self._keys: dict[WorkloadKey, OrderKey] = {}
        self._kinds: dict[WorkloadKey, tuple[str, EquivalenceClass | None]] = {}
        self._sorted: list[OrderKey] = []
        self._half: set[WorkloadKey] = set()
        self.lanes: dict[str, QueueHeap] = {}
        self.pending: Counter[str] = Counter()
        """By queue: workloads of which nothing has a node yet."""
        self._counted: dict[WorkloadKey, str] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def __contains__(self, key: WorkloadKey) -> bool:
        return key in self._keys

    def refreshed(self) -> list[WorkloadKey]:
        """Return what waits, the next one first, with every workload brought up to date."""
        self._cluster.settle()
        for key in self._cluster.workloads:
            self.update(key)
        return self.all()

    def update(self, key: WorkloadKey) -> bool:
        """Bring one workload up to date; return whether it waits."""
        self.drop(key)
        workload = self._cluster.workloads.get(key)
        if workload is None:
            return False
        priority = self._cluster.priorities.of(workload)
        if priority:  # what stands may be less important than what names no priority
            self._cluster.ledger.activate()
        if not workload.open:
            return False
        half = workload.half_placed
        new = (not half, -priority, workload.queued_at, key.namespace, natural(key.name), key)
        self._keys[key] = new
        insort(self._sorted, new)
        if half:
            self._half.add(key)
        queue = workload.queue if self._cluster.ledger.specs else ""
        if self._cluster.ledger.specs and not workload.bound:
            self._counted[key] = queue
            self.pending[queue] += 1
        self._kinds[key] = queue, None
        kind = None if half else self._kind_of(workload)
        if kind is not None:
            self._kinds[key] = queue, kind
            self.lanes.setdefault(queue, QueueHeap()).add(new, kind)
        return True

    def drop(self, key: WorkloadKey) -> None:
        """Let a workload wait no more, if it does."""
        old = self._keys.pop(key, None)
        if old is None:
            return
        del self._sorted[bisect_left(self._sorted, old)]
        self._kinds.pop(key, None)
        self._half.discard(key)
        counted = self._counted.pop(key, None)
        if counted is not None:
            self.pending[counted] -= 1

    def live(self, order: OrderKey, kind: EquivalenceClass) -> bool:
        """Return whether a workload still waits as it did when it was put into its lane."""
        key = order[-1]
        return self._keys.get(key) is order and self._kinds[key][1] == kind

    def shut(self, key: WorkloadKey) -> None:
        """Try no more of what is like a workload in its queue until the thaw."""
        queue, kind = self._kinds.get(key, ("", None))
        if kind is not None:
            self.lanes[queue].shut(kind)

    def blocked(self, key: WorkloadKey) -> bool:
        """Return whether a workload waits for something about itself, and is not tried."""
        return key not in self._half and self._kinds[key][1] is None

    def step_aside(self, key: WorkloadKey) -> None:
        """Let a workload wait without being tried until it is brought up to date."""
        if key in self._kinds:
            self._kinds[key] = self._kinds[key][0], None

    def thaw(self) -> None:
        """Let everything be tried again."""
        for lane in self.lanes.values():
            lane.thaw()

    def contending(self) -> list[str]:
        """Return the queues in which a workload waits that has no node yet."""
        return [queue for queue, number in self.pending.items() if number]

    def half_placed(self) -> list[WorkloadKey]:
        """Return the half-placed gangs in order."""
        return [key[-1] for key in sorted(self._keys[key] for key in self._half)]

    def all(self) -> list[WorkloadKey]:
        """Return the waiting workloads by priority and age, of all queues."""
        return [key[-1] for key in self._sorted]

    def sort(self, keys: set[WorkloadKey]) -> list[WorkloadKey]:
        """Return those of *keys* that wait, by priority and age."""
        if len(keys) * 8 < len(self._sorted):
            return [key[-1] for key in sorted(self._keys[k] for k in keys if k in self._keys)]
        return [key[-1] for key in self._sorted if key[-1] in keys]

    def places(self) -> dict[WorkloadKey, int]:
        """Return each waiting workload's place in its queue, 1 for the next one."""
        counts: Counter[str] = Counter()
        found = {}
        for order in self._sorted:
            key = order[-1]
            queue = self._kinds[key][0]
            counts[queue] += 1
            found[key] = counts[queue]
        return found


def classes(cluster: Cluster, problem: Callable[[Workload], Problem | None]) -> ClassOf:
    """Return the function that tells the class of a workload by its *problem*."""
    return lambda workload: equivalence_class(cluster, workload, problem(workload))


def equivalence_class(
    cluster: Cluster, workload: Workload, problem: Problem | None
) -> EquivalenceClass | None:
    """Return what workloads of one queue share that fit or fail alike; None for one by itself."""
    if problem is None or workload.key in cluster.nominations:
        return None
    rank, magnitude = cluster.priorities.rank(workload), _magnitude(workload.runtime)
    if problem.single:
        return problem.items[0].shape.id, rank, magnitude
    if workload.bound:  # where the others stand follows from this one
        return workload.key
    return problem.signature, rank, magnitude


def _magnitude(runtime: float | None) -> int:
    """Return of which order of magnitude a run time is."""
    return -1 if runtime is None else int(runtime).bit_length()
