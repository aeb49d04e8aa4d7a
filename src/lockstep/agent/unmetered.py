"""The agent's part that says when work walks round the front: time of a shared card unmetered."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from lockstep.agent.node import Node
from lockstep.api.core import NODES, Pod
from lockstep.api.node_health import Finding
from lockstep.devices.sharing.accounts import metered
from lockstep.devices.sharing.core.exposition import Key, Use
from lockstep.devices.sharing.core.gaps import NOT_HELD, Gap, gaps
from lockstep.devices.sharing.core.unmetered import Seen, Unmetered
from lockstep.health.writing import add
from lockstep.kube.errors import ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder

log = logging.getLogger(__name__)

EVERY: Final = 1.0
REASON: Final = "UnmeteredGpuTime"


class UnmeteredPart:
    """Compares what NVML sees of shared cards with what their shares were metered for."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._unmetered = Unmetered()
        self._before: tuple[dict[Key, Use], float] = ({}, 0.0)
        self._told: set[tuple[str, ...]] = set()
        self._recorder = Recorder(node.client, "agent")

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                now = time.monotonic()
                for uuid, seen in self._unmetered.look(self._seen(now), now).items():
                    await self._tell(uuid, seen)
                await asyncio.sleep(EVERY)
        finally:
            await self._recorder.close()

    def _seen(self, now: float) -> dict[str, Seen]:
        granter = self._node.granter
        uses = {one.key: one for one in granter.uses()} if granter is not None else {}
        (last, at), self._before = self._before, (uses, now)
        before, counted = metered(last.values()), metered(uses.values())
        found = gaps(last, uses.values())
        self._tell_pods(found)
        gapped = {one.share[3] for one in found}
        busy = {
            card.uuid: sample.values["utilization"]
            for card, sample in self._node.watch.samples()
            if "utilization" in sample.values
        }
        passed = (now - at) * 1e7
        return {
            uuid: Seen(busy[uuid], max(0, total - before[uuid]) / passed, uuid in gapped)
            for uuid, total in counted.items()
            if uuid in before and uuid in busy
        }

    def _tell_pods(self, found: list[Gap]) -> None:
        """Tell each pod, once for each kind of gap, what the front cannot hold of its share."""
        self._told = {one for one in self._told if self._pod(one[0], one[1]) is not None}
        for gap in found:
            namespace, name, container, _ = gap.share
            pod = self._pod(namespace, name)
            for kind, message in gap.messages.items():
                if pod is None or (key := (namespace, name, container, kind)) in self._told:
                    continue
                self._told.add(key)
                log.warning("pod %s/%s: %s", namespace, name, message)
                self._recorder.event(pod, "Warning", NOT_HELD, message)

    def _pod(self, namespace: str, name: str) -> Pod | None:
        return self._node.pods.get(namespace, name) if self._node.pods.synced else None

    async def _tell(self, uuid: str, seen: Seen) -> None:
        index = next(c.index for c in self._node.watch.inventory.cards if c.uuid == uuid)
        evidence = (
            f"GPU {index} was busy for {seen.busy:.0f} % of the time and its shares were metered "
            f"for {seen.metered:.0f} %: something on it walks round the front"
        )
        log.warning("%s", evidence)
        finding = Finding(
            cause="time of a shared GPU is unmetered",
            class_="software",
            action="isolate_node",
            device=f"gpu/{index}",
            confidence=0.9,
            evidence=evidence,
        )
        node = self._node
        while True:
            try:
                await add(node.client, node.name, [finding])
                self._recorder.event(
                    await node.client.get(NODES, node.name), "Warning", REASON, evidence
                )
            except Conflict:
                continue
            except ApiError as error:
                level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
                log.log(level, "the health of node %s: %s", node.name, error)
            return
