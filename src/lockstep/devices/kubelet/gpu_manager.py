"""Advertises this node's GPUs to its kubelet, and corrects what pods record of their GPUs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from lockstep.api import names
from lockstep.api.core import PODS, Pod
from lockstep.devices.core import allocation
from lockstep.devices.kubelet import podresources
from lockstep.devices.kubelet.claims import CDI, Claims
from lockstep.devices.kubelet.plugin import Plugin
from lockstep.devices.kubelet.shares import SharePlugin
from lockstep.devices.watching import Watch
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.kube.events import Recorder

log = logging.getLogger(__name__)


class GpuManager:
    """The plugin for ``nvidia.com/gpu``, the driver for claims, and what checks their grants."""

    def __init__(
        self,
        client: Client,
        node: str,
        watch: Watch,
        *,
        pods: Callable[[], Iterable[Pod]],
        kubelet: Path,
        cdi: Path | None = None,
        shares: Path | None = None,
    ) -> None:
        self._client, self._watch, self._pods, self._kubelet = client, watch, pods, kubelet
        self.claims = Claims(
            client, node, watch, kubelet=kubelet, holders=self._holders, cdi_directory=cdi or CDI
        )
        self.plugin = Plugin(
            watch,
            names.GPU,
            kubelet,
            self._prefer,
            claimed=self._taken,
            cdi_directory=cdi or CDI,
        )
        self.shares = (
            SharePlugin(watch, kubelet, shares, pods=pods, claimed=self._claimed)
            if shares is not None
            else None
        )
        self._recorder = Recorder(client, "agent")

    async def run(self) -> None:
        """Hand out and check until cancelled."""
        parts = [self.plugin.run(), self.claims.run(), self._check()]
        if self.shares is not None:
            parts += [self.shares.run(), self._settle(self.shares)]
        try:
            await asyncio.gather(*parts)
        finally:
            await self._recorder.close()

    async def _prefer(
        self, available: Collection[str], must: Sequence[str], size: int
    ) -> list[str]:
        cards = self._watch.inventory.cards
        held = await podresources.held_if_told(self._kubelet, names.GPU)
        pods = self._pods()
        available = set(available) - self._taken().keys() | set(must)
        return allocation.preferred(available, must, size, pods=pods, held=held, cards=cards)

    def _claimed(self) -> dict[str, str]:
        """Return by card, in words, the claim that holds it."""
        prepared = self.claims.prepared.cards()
        return {uuid: f"ResourceClaim {claim}" for uuid, claim in prepared.items()}

    def _taken(self) -> dict[str, str]:
        """Return by card what holds it, or a share of it."""
        return self._claimed() | (self.shares.in_use() if self.shares is not None else {})

    async def _settle(self, shares: SharePlugin) -> None:
        while True:
            await podresources.next_look(shares.allocated)
            await shares.settle(self._recorder)

    async def _holders(self) -> dict[str, str]:
        """Return by card the pod that has it, or a share of it, through a device plugin."""
        shared = self.shares.in_use() if self.shares is not None else {}
        held = await podresources.held_if_told(self._kubelet, names.GPU)
        return shared | {
            identity: f"{namespace}/{pod}"
            for (namespace, pod), containers in held.items()
            for ids in containers.values()
            for identity in ids
        }

    async def _check(self) -> None:
        while True:
            await podresources.next_look(self.plugin.allocated)
            cards = self._watch.inventory.cards
            held = await podresources.held_if_told(self._kubelet, names.GPU)
            for one in allocation.corrections(self._pods(), held, cards):
                await self._correct(one)

    async def _correct(self, one: allocation.Correction) -> None:
        patch = {"metadata": {"annotations": {names.GPUS_ANNOTATION: one.now}}}
        try:
            await self._client.patch(PODS, one.pod, patch, one.namespace)
        except ApiError as error:
            log.warning("cannot correct the record of %s/%s: %s", one.namespace, one.pod, error)
        else:
            log.info("%s/%s holds GPU %s, not %s", one.namespace, one.pod, one.now, one.was)
