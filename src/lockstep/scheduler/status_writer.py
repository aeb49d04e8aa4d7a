"""Writing down why workloads wait and how far gangs are, at a pace that the API server bears."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from lockstep.api.core import Pod
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.scheduler.binder import Binder
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.cycle.result import CycleResult
from lockstep.scheduler.core.model.decisions import Estimate
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.runtime.gang_status import unscheduled_status
from lockstep.scheduler.status_patch import write as write_gang_status
from lockstep.scheduler.status_patch import write_pod
from lockstep.scheduler.status_plan import Event, GangChange, PodCondition, StatusPlan

log = logging.getLogger(__name__)

PACE = 0.2
"""Seconds between two batches: what happens in between is written once."""
WRITERS = 8


class StatusWriter:
    """Keeps the statuses of gangs and the conditions of waiting pods as they should be."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        decider: Decider,
        pods: Informer[Pod],
        binder: Binder,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._cluster = decider.cluster
        self._binder = binder
        self._plan = StatusPlan(decider, pods.get, binder, time.monotonic)
        self._wake = asyncio.Event()
        self._slots = asyncio.Semaphore(WRITERS)

    def take(self, result: CycleResult) -> None:
        """Take note of a round: whom it concerned, and that others' numbers may have drifted."""
        self._plan.take(result)
        self._wake_up()

    def foresee(self, estimates: dict[WorkloadKey, Estimate], seen: float) -> None:
        """Take note of when what waits will start, as found at the Unix time *seen*."""
        self._plan.foresee(estimates, seen)
        self._wake_up()

    def cannot_read(self, obj: Any, error: Exception) -> None:
        """Report an object from the API server that the scheduler could not take in."""
        event = self._plan.cannot_read(obj, error)
        if event is not None:
            self._tell(event)
        self._wake_up()

    @property
    def behind(self) -> bool:
        """Return whether there is anything that may have to be written."""
        return self._plan.behind

    def _tell(self, event: Event) -> None:
        self._recorder.event(event.about, event.kind, event.reason, event.message)

    def _wake_up(self) -> None:
        if self.behind:
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(PACE)
            await self._binder.lull()
            self._wake.clear()
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            batch = self._plan.next(now)
            for event in batch.events:
                self._tell(event)
            await asyncio.gather(
                *(self._write_gang(one) for one in batch.gangs),
                *(self._write_pod(one, now) for one in batch.pods),
            )
            self._wake_up()

    async def _write_gang(self, one: GangChange) -> None:
        key, seen, change = one
        async with self._slots:
            try:
                await write_gang_status(self._client, self._cluster, seen, change)
                if change.get("phase") == "Failed":
                    self._again(key)  # its pods are next
            except NotFound:
                return
            except Conflict:
                self._again(key)
            except ApiError as error:
                log.warning("status of gang %s/%s: %s", key.namespace, key.name, error)
                self._again(key)

    async def _write_pod(self, one: PodCondition, now: str) -> None:
        member = one.member
        status = unscheduled_status(member, one.verdict, now, outdated=one.outdated)
        # A version, once the pod has a node: what is late would say of a pod that runs that it
        # waits, or has failed.
        async with self._slots:
            if member.node:
                return
            try:
                await write_pod(self._client, member, status, seen=True)
            except NotFound:
                return
            except Conflict:
                if member.workload is not None:
                    self._again(member.workload)
                return
            except ApiError as error:
                log.warning("condition of pod %s/%s: %s", member.namespace, member.name, error)
                if member.workload is not None:
                    self._again(member.workload)
                return
        self._plan.wrote(one)

    def _again(self, key: WorkloadKey) -> None:
        self._plan.again(key)
        self._wake.set()
