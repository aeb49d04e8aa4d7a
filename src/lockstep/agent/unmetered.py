"""The agent's part that says when work walks round the front: time of a shared card unmetered."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from lockstep.agent.node import Node
from lockstep.api.core import NODES
from lockstep.api.node_health import Finding
from lockstep.devices.sharing.accounts import metered
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
        self._before: tuple[dict[str, int], float] = ({}, 0.0)
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
        counted = metered(granter.uses()) if granter is not None else {}
        (before, at), self._before = self._before, (counted, now)
        busy = {
            card.uuid: sample.values["utilization"]
            for card, sample in self._node.watch.samples()
            if "utilization" in sample.values
        }
        passed = (now - at) * 1e7
        return {
            uuid: Seen(busy[uuid], max(0, total - before[uuid]) / passed)
            for uuid, total in counted.items()
            if uuid in before and uuid in busy
        }

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
