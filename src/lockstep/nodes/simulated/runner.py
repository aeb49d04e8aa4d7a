"""Doing to pods what the timeline says, many at once but never more than a bound."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from lockstep.api.core import PODS, Pod
from lockstep.kube.cache import Change
from lockstep.kube.client import Client, Patch
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.nodes.simulated import statuses
from lockstep.nodes.simulated.timeline import Act, Action, Timeline
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

PARALLEL = 48


class PodRunner:
    """Runs the pods of a fleet."""

    def __init__(self, client: Client, hosts: Mapping[str, str], timeline: Timeline):
        """*hosts* are the addresses of the nodes by name; nodes may come and go."""
        self._client = client
        self._hosts = hosts
        self._timeline = timeline
        self._addresses = statuses.PodAddresses()
        self._wake = asyncio.Event()
        self._waiting: asyncio.Queue[Action] = asyncio.Queue()

    def on_change(self, change: Change[Pod]) -> None:
        """Take a change of a pod from the informer."""
        pod = change.object
        if change.new is None:
            self._timeline.pod_gone(pod)
            self._addresses.release(pod.metadata.uid)
            return
        if pod.status.pod_ip and pod.spec.node_name in self._hosts:
            self._addresses.keep(pod.metadata.uid, pod.status.pod_ip)
        self._timeline.pod_seen(pod, time.time())
        self._wake.set()

    @property
    def busy(self) -> bool:
        """Whether more is due than is under way."""
        return not self._waiting.empty()

    def wake(self) -> None:
        """Look at the timeline again: something else than a pod has changed it."""
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(PARALLEL):
                group.create_task(self._work())
            group.create_task(self._hand_out())

    async def _hand_out(self) -> None:
        while True:
            self._wake.clear()
            for action in self._timeline.due(time.time()):
                self._waiting.put_nowait(action)
            due = self._timeline.next_due()
            try:
                async with asyncio.timeout(None if due is None else max(0.0, due - time.time())):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _work(self) -> None:
        while True:
            action = await self._waiting.get()
            worked = await self._carry_out(action)
            self._timeline.done(action, time.time(), worked=worked)
            self._wake.set()

    async def _carry_out(self, action: Action) -> bool:
        pod = action.pod
        meta = pod.metadata
        try:
            if action.act is Act.DELETE:
                await self._client.delete(
                    PODS, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid
                )
            else:
                # Of all forms that lose nothing of others this costs the server least.
                how = Patch.STRATEGIC
                await patch_status(self._client, PODS, meta, self._status(action), how=how)
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name; the watch says so as well.
            return True
        except ApiError as error:
            log.warning("pod %s/%s: cannot %s it: %s", *_names(pod), action.act.value, error)
            return False
        return True

    def _status(self, action: Action) -> dict[str, object]:
        pod = action.pod
        now = time.time()
        if action.act is Act.START:
            address = self._addresses.of(pod.metadata.uid)
            host = self._hosts[pod.spec.node_name]
            return statuses.running(pod, address=address, host=host, now=now)
        return statuses.ended(
            pod, exit_code=action.exit_code, why=action.why, started_at=action.started_at, now=now
        )


def _names(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.namespace, pod.metadata.name)
