"""The scheduler's loop: something changed, decide, bind, report."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection

from lockstep.api.core import PODS
from lockstep.api.queue import QUEUES
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound
from lockstep.kube.events import Recorder
from lockstep.scheduler.binder import Batch, Binder
from lockstep.scheduler.claim_source import ClaimSource
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.cycle.timers import ROLLBACK
from lockstep.scheduler.core.model.decisions import Rollback
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.event_handlers import EventHandlers
from lockstep.scheduler.evictor import Evictor
from lockstep.scheduler.forecaster import Forecaster
from lockstep.scheduler.hypernode_source import HyperNodeSource
from lockstep.scheduler.metrics import Metrics
from lockstep.scheduler.queue_status_writer import QueueStatusWriter
from lockstep.scheduler.share_resizer import ShareResizer
from lockstep.scheduler.status_writer import StatusWriter

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
ROUND_PAUSE = 0.01
"""Seconds between two rounds. Each binding comes back as an event, and a round for each event would
cost more than the bindings; what happens within a pause is one round."""
PODS_PER_ROUND = 256
"""Pods placed before watches and bindings get their turn again."""


class Scheduler:
    """One term of leadership: a state built from the informers alone, and what acts on it."""

    def __init__(
        self,
        client: Client,
        feed: EventHandlers,
        recorder: Recorder,
        metrics: Metrics,
        names: Collection[str] = (),
    ) -> None:
        self.cluster = Cluster(names)
        self._client = client
        self._feed = feed
        self._recorder = recorder
        self._metrics = metrics
        self._changed = asyncio.Event()
        self._decider = Decider(self.cluster)
        self._claims = ClaimSource(client, self.cluster, self._changed.set)
        self._binder = Binder(client, self.cluster, metrics, self._changed.set)
        self._resizer = ShareResizer(client, self.cluster)
        self._evictor = Evictor(client, self.cluster, recorder)
        self._status = StatusWriter(
            client, recorder, self._decider, feed.informer(PODS), self._binder
        )
        self._forecaster = Forecaster(self._decider, self._status.foresee)
        self._door = HyperNodeSource(client, self.cluster, self._changed.set)
        self._queues = QueueStatusWriter(client, self._decider, feed.informer(QUEUES))

    async def run(self, led_since: float) -> None:
        """Schedule until cancelled; *led_since* is the event loop's time when the lead was won."""
        detach = self._feed.attach(self.cluster, self._door, self._woken, self._status.cannot_read)
        known, claimed = asyncio.Event(), asyncio.Event()
        others = [
            asyncio.create_task(self._door.run(known)),
            asyncio.create_task(self._claims.run(claimed)),
        ]
        try:
            await known.wait()
            await claimed.wait()
            if not self._feed.pods_known_since(led_since):
                await self._catch_up()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._binder.run())
                group.create_task(self._status.run())
                group.create_task(self._queues.run())
                group.create_task(self._forecaster.run())
                group.create_task(self._decide(group))
        finally:
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            detach()

    def _woken(self) -> None:
        self._changed.set()
        self._queues.note()
        self._evictor.note()

    async def _catch_up(self) -> None:
        """Read all pods afresh: the informer may lag behind what the last leader did."""
        while True:
            try:
                await self._feed.catch_up()
            except ApiError as error:
                log.warning("pods cannot be listed yet: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _decide(self, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        alarm: asyncio.TimerHandle | None = None
        while True:
            await self._changed.wait()
            self._changed.clear()
            started = loop.time()
            now = time.time()
            result = self._decider.decide(now, busy=self._binder.busy, limit=PODS_PER_ROUND)
            self._act(result, group)
            self._resizer.answer(group)
            self._metrics.decision.observe(loop.time() - started)
            if result.more:
                self._changed.set()
            if alarm is not None:
                alarm.cancel()
            if result.wake_at is not None:
                delay = max(0.0, result.wake_at - time.time())
                alarm = loop.call_later(delay, self._changed.set)
            await asyncio.sleep(ROUND_PAUSE)

    def _act(self, result: CycleResult, group: asyncio.TaskGroup) -> None:
        for placement in result.placements:
            self._binder.submit(placement)
        for key, error in result.errors.items():
            where = f"{key.namespace}/{key.name}"
            log.error("deciding about %s %s failed", key.kind, where, exc_info=error)
        for rollback in result.rollbacks:
            self._binder.busy[rollback.workload] = Batch(rollback.workload, len(rollback.members))
            group.create_task(self._roll_back(rollback))
        for eviction in result.evictions:
            group.create_task(self._evictor.carry_out(eviction))
        if begun := self._evictor.unknown(self._decider.preemptor.told()):
            group.create_task(self._evictor.finish(begun))
        for rearrangement in result.rearrangements:
            group.create_task(self._evictor.rearrange(rearrangement))
        for note in result.notes:
            self._evictor.tell(note)
        attempts = self._metrics.attempts
        attempts.labels("placed").inc(len(result.placements))
        attempts.labels("rolled_back").inc(len(result.rollbacks))
        attempts.labels("preempting").inc(len(result.evictions))
        attempts.labels("defragmenting").inc(len(result.rearrangements))
        attempts.labels("error").inc(len(result.errors))
        attempts.labels("unschedulable").inc(len(result.failed))
        self._metrics.pending.set(len(self._decider.pending_queue))
        self._status.take(result)
        if result.touched or result.failed:
            self._forecaster.note()

    async def _roll_back(self, rollback: Rollback) -> None:
        """Give a gang's nodes back; what cannot be deleted now is tried again in a later round."""
        workload = self.cluster.workloads.get(rollback.workload)
        if workload is not None and workload.gang is not None:
            message = (
                f"could not be completed within {ROLLBACK.seconds:g} s: its "
                f"{len(rollback.members)} pods with nodes are deleted so that nothing half-placed "
                "remains"
            )
            self._recorder.event(workload.gang, "Warning", "RolledBack", message)
        for member in rollback.members:
            try:
                await self._client.delete(PODS, member.name, member.namespace, uid=member.uid)
            except NotFound:
                continue
            except Exception as error:
                log.warning("delete %s/%s: %r", member.namespace, member.name, error)
        self._binder.busy.pop(rollback.workload, None)
        self.cluster.touched.add(rollback.workload)
        self._changed.set()
