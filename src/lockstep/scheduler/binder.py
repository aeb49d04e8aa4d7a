"""Binding what was decided, many pods at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from lockstep.api.backoff import Backoff, Pauses
from lockstep.api.core import PODS
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Conflict, NotFound, NotLeading, Unreachable
from lockstep.scheduler.claim_writer import ClaimWriter, Taken
from lockstep.scheduler.core.model.decisions import Assignment, Placement
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.resources.device_allocation import annotations_of
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.metrics import Metrics

log = logging.getLogger(__name__)

CONCURRENCY = 64
MOMENT = 5.0
"""Seconds for which how far bindings are is not told."""
BACKOFF = Backoff(initial=0.5, cap=30.0, jitter=0.2)
"""How long a workload rests after a binding of it failed."""


CONFLICTS = 3
"""Conflicts after which a pod that still has no node is taken for refused."""


class Outcome(Enum):
    """What became of one binding."""

    BOUND = "bound"
    LOST = "lost"
    """The pod is gone or another scheduler has bound it: there is nothing left to do."""
    REFUSED = "refused"
    """The pod is still without a node."""


@dataclass(slots=True)
class Batch:
    """The bindings of one placement that are under way."""

    workload: WorkloadKey
    left: int
    failed: int = 0
    since: float = 0.0
    """When it began, by the event loop's time."""


class Binder:
    """Binds placements in the order in which they were decided, with bounded concurrency.

    A workload is in ``busy`` until all its bindings have ended one way or the other. What failed is
    taken back from the cluster's state only once it is certain that it did not happen.
    """

    def __init__(
        self, client: Client, cluster: Cluster, metrics: Metrics, wake: Callable[[], None]
    ) -> None:
        self.busy: dict[WorkloadKey, Batch] = {}
        self._client = client
        self._cluster = cluster
        self._claims = ClaimWriter(client, cluster)
        self._metrics = metrics
        self._bindings = {outcome: metrics.bindings.labels(outcome.value) for outcome in Outcome}
        self._wake = wake
        self._queue: asyncio.Queue[tuple[Assignment, Batch, float]] = asyncio.Queue()
        self._lull = asyncio.Event()
        self._lull.set()
        self._failures: dict[WorkloadKey, Pauses] = {}

    async def lull(self) -> None:
        """Return when no binding waits for its turn, but after a moment at the latest.

        Bindings are what a server at its limit is there for: what else there is to do waits, and
        most of it has become one thing instead of many by then.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await self._lull.wait()

    def just_began(self, workload: WorkloadKey) -> bool:
        """Return whether a workload's bindings are under way and will most likely end in a
        moment.
        """
        batch = self.busy.get(workload)
        now = asyncio.get_running_loop().time()
        return batch is not None and now - batch.since < MOMENT

    def submit(self, placement: Placement) -> None:
        """Queue the bindings of a placement."""
        now = asyncio.get_running_loop().time()
        count = len(placement.assignments)
        batch = self.busy[placement.workload] = Batch(placement.workload, count, since=now)
        for assignment in placement.assignments:
            self._lull.clear()
            self._queue.put_nowait((assignment, batch, now))

    async def run(self) -> None:
        """Bind until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(CONCURRENCY):
                group.create_task(self._work())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            assignment, batch, since = await self._queue.get()
            if self._queue.empty():
                self._lull.set()
            outcome = await self._bind_surely(assignment)
            self._metrics.bind.observe(loop.time() - since)
            self._bindings[outcome].inc()
            if outcome is not Outcome.BOUND:
                batch.failed += 1
                self._cluster.forget(assignment.member.key, assignment.member.uid)
            batch.left -= 1
            if not batch.left:
                self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        if not batch.failed:
            self._failures.pop(batch.workload, None)
            del self.busy[batch.workload]
            self._wake()
            return
        delay = self._failures.setdefault(batch.workload, Pauses(BACKOFF)).failed()
        asyncio.get_running_loop().call_later(delay, self._release, batch.workload)

    def _release(self, workload: WorkloadKey) -> None:
        self.busy.pop(workload, None)
        self._cluster.touched.add(workload)
        self._wake()

    async def _bind_surely(self, assignment: Assignment) -> Outcome:
        """Bind one pod; an unexpected error concerns that pod alone, and not the others."""
        member = assignment.member
        try:
            return await self._bind(assignment)
        except Exception:
            log.exception("binding %s/%s failed", member.namespace, member.name)
            return await self._find_out(assignment)

    async def _bind(self, assignment: Assignment) -> Outcome:
        """Bind one pod, and do not let go before it is certain what became of it.

        A binding whose answer was lost may still be on its way. It is sent again: a pod is bound
        only once, so the answer to a second one settles the first.
        """
        member, spot = assignment.member, assignment.spot
        held = annotations_of(spot.grant, self._cluster.table.layout_of(spot.node)) or None
        pauses, lost, conflicts = Pauses(BACKOFF), False, 0
        while True:
            try:
                await self._claims.write(member)
                await self._client.bind(
                    member.namespace, member.name, spot.node, uid=member.uid, annotations=held
                )
            except Taken as error:
                log.warning("bind %s/%s: %s", member.namespace, member.name, error)
                return await self._find_out(assignment)
            except NotFound:
                return Outcome.LOST
            except ApiError as error:
                log.warning("bind %s/%s to %s: %s", member.namespace, member.name, spot.node, error)
                if isinstance(error, Conflict) or (lost and _refuses(error)):
                    outcome, conflicts = await self._find_out(assignment), conflicts + 1
                    # Let go of, a place that was freed for a pod would be open to all.
                    if outcome is not Outcome.REFUSED or conflicts == CONFLICTS:
                        return outcome
                elif _refuses(error):
                    return Outcome.REFUSED
            else:
                return Outcome.BOUND
            lost = True
            await asyncio.sleep(pauses.failed())

    async def _find_out(self, assignment: Assignment) -> Outcome:
        """Ask what became of a pod, until the API server answers."""
        member, pauses = assignment.member, Pauses(BACKOFF)
        while True:
            try:
                pod = await self._client.get(PODS, member.name, member.namespace)
            except NotFound:
                return Outcome.LOST
            except Exception as error:
                log.warning("get pod %s/%s: %r", member.namespace, member.name, error)
                await asyncio.sleep(pauses.failed())
                continue
            known = self._cluster.pods.get(member.key)
            if known is None or not known.uid == member.uid == pod.metadata.uid:
                return Outcome.LOST  # be it while it was asked about
            if not pod.spec.node_name:
                return Outcome.REFUSED
            self._cluster.set_pod(pod)
            same = pod.spec.node_name == assignment.spot.node
            return Outcome.BOUND if same else Outcome.LOST


def _refuses(error: ApiError) -> bool:
    """Return whether the server has certainly not acted on what *error* answers."""
    if isinstance(error, NotLeading):
        return True
    if isinstance(error, Unreachable):
        return not error.acted
    return 400 <= error.status < 500
