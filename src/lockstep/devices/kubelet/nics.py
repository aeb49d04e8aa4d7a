"""Hands this node's NICs out through its kubelet, by its links and by its plugins' ConfigMaps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lockstep.api import names
from lockstep.api.core import CONFIG_MAPS, PODS, ConfigMap, Pod
from lockstep.compat import nic_plugins
from lockstep.compat.nic_plugins import NicResource
from lockstep.devices.core import allocation
from lockstep.devices.core.grants import NICS
from lockstep.devices.core.model import Card, Inventory
from lockstep.devices.kubelet import podresources
from lockstep.devices.kubelet.plugin import Plugin
from lockstep.devices.kubelet.plugins import Plugins, serve
from lockstep.devices.network.candidates import seen
from lockstep.devices.network.core.offers import OWN, Offers, offers, place, places, variables
from lockstep.devices.network.tree import Tree
from lockstep.devices.watching import FENCED, Watch
from lockstep.kube.cache import Change
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.kube.informer import Informer

log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
CONFIGS: Final = ("sriovdp-config", "rdma-devices")
"""The ConfigMaps of the SR-IOV and of the shared RDMA device plugin, in ``kube-system``."""
KEY: Final = "config.json"
LOOK_EVERY: Final = 5.0
"""Seconds between two looks at the links."""


class Nics:
    """The NICs of this machine as plugins offer them; the links are looked at every few seconds."""

    def __init__(
        self, tree: Callable[[], Tree] = Tree, fenced: Callable[[], Collection[str]] = frozenset
    ) -> None:
        self._tree, self._fenced = tree, fenced
        self._resources: tuple[NicResource, ...] = ()
        self._listeners: list[Callable[[], None]] = []
        self._told: list[str] = []
        self.offers: Offers = offers([])

    @property
    def inventory(self) -> Inventory:
        """Return the devices of all resources."""
        fenced = self._fenced()
        return Inventory(
            cards=[
                replace(one, trouble=one.trouble or FENCED)
                if one.resource == OWN.name and f"nic/{one.index}" in fenced
                else one
                for one in self.offers.cards
            ]
        )

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call *listener* whenever the devices are others."""
        self._listeners.append(listener)

    async def state(self, resources: Sequence[NicResource]) -> None:
        """Take other resources."""
        self._resources = tuple(resources)
        await self.look()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Look at the machine once."""
        found = offers(await asyncio.to_thread(seen, self._tree()), self._resources)
        before, self.offers = self.offers, found
        if found.problems != self._told:
            self._told = found.problems
            for one in found.problems:
                log.warning("%s", one)
        if found.cards != before.cards or found.aside != before.aside:
            self.tell()

    def tell(self) -> None:
        """Tell all listeners to look again."""
        for listener in self._listeners:
            listener()


class NicPart:
    """The plugins for ``lockstep.dev/nics`` and for what the ConfigMaps name."""

    def __init__(
        self,
        client: Client,
        node: str,
        watch: Watch,
        *,
        pods: Callable[[], Iterable[Pod]],
        kubelet: Path,
    ) -> None:
        self._client, self._node, self._watch = client, node, watch
        self._pods, self._kubelet = pods, kubelet
        self._nics = Nics(fenced=lambda: watch.fenced)
        self._stated: dict[str, list[NicResource]] = {}
        self._plugins: Plugins[NicResource] = Plugins(self._serve)
        self._due = asyncio.Event()
        self._granted = asyncio.Event()
        self._informers = [
            Informer(
                client, CONFIG_MAPS, namespace=NAMESPACE, field_selector=f"metadata.name={name}"
            )
            for name in CONFIGS
        ]
        self._nics.subscribe(self._due.set)
        watch.subscribe(self._nics.tell)

    async def run(self) -> None:
        """Hand out until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, informer in zip(CONFIGS, self._informers, strict=True):
                    informer.subscribe(partial(self._changed, name))
                    group.create_task(informer.run())
                for informer in self._informers:
                    await informer.wait_synced()
                group.create_task(self._keep())
                group.create_task(self._nics.run())
                group.create_task(self._check())
        finally:
            self._plugins.end()

    def _changed(self, name: str, change: Change[ConfigMap]) -> None:
        data = change.new.data if change.new is not None else {}
        text = data.get(KEY) or next(iter(data.values()), "")
        problems: list[str] = []
        try:
            self._stated[name], problems = nic_plugins.read(text) if text else ([], [])
        except ValueError as error:
            problems = [f"{error}; what was handed out before goes on"]
        for one in problems:
            log.error("ConfigMap %s/%s: %s", NAMESPACE, name, one)
        self._due.set()

    async def _keep(self) -> None:
        """Keep the plugins to what is stated, and our own where there is an RDMA device."""
        while True:
            await self._due.wait()
            self._due.clear()
            stated = {one.name: one for name in CONFIGS for one in self._stated.get(name, ())}
            await self._nics.state(list(stated.values()))
            found = self._nics.offers
            self._watch.set_aside(found.aside)
            offered = {card.resource for card in found.cards}
            own = {OWN.name: OWN} if OWN.name in offered else {}
            self._plugins.keep(own | stated)

    async def _serve(self, resource: NicResource) -> None:
        plugin = Plugin(
            self._nics,
            resource.name,
            self._kubelet,
            lambda available, must, size: self._prefer(resource, available, must, size),
            variables=self._variables,
        )
        where = "its ConfigMap" if resource is not OWN else "the other plugin"
        await serve(self._client, self._node, plugin, where)

    def _variables(self, cards: Sequence[Card]) -> dict[str, str]:
        self._granted.set()
        return variables(self._nics.offers, cards)

    async def _prefer(
        self, resource: NicResource, available: Collection[str], must: Sequence[str], size: int
    ) -> list[str]:
        """Return what the scheduler chose, else the NICs beside the GPUs of the same container."""
        cards = self._offered(resource.name)
        held = await podresources.held_if_told(self._kubelet, resource.name)
        pods = list(self._pods())
        chosen = allocation.chosen_for(
            available, must, size, pods=pods, held=held, cards=cards, kind=NICS
        )
        if resource is OWN and chosen:
            return chosen
        gpus = {card.index: card for card in self._watch.inventory.cards}
        near = allocation.beside(pods, held, resource.name, size)
        hang = [place(gpus[index]) for index in near if index in gpus]
        order = [card.uuid for card in cards if card.uuid in available]
        return nic_plugins.preferred(order, must, size, places(cards), hang)

    def _offered(self, resource: str) -> list[Card]:
        return [card for card in self._nics.offers.cards if card.resource == resource]

    async def _check(self) -> None:
        """Keep the records of pods true to what kubelet gave them of our own resource."""
        while True:
            await podresources.next_look(self._granted)
            if not (cards := self._offered(OWN.name)):
                continue
            held = await podresources.held_if_told(self._kubelet, OWN.name)
            for one in allocation.corrections(self._pods(), held, cards, NICS):
                by_index = {card.index: card.model for card in cards}
                called = [by_index[int(index)] for index in one.now.split(",")]
                await self._correct(
                    one,
                    {names.NICS_ANNOTATION: one.now, names.HCAS_ANNOTATION: ",".join(called)},
                )

    async def _correct(self, one: allocation.Correction, notes: Mapping[str, str]) -> None:
        try:
            body = {"metadata": {"annotations": notes}}
            await self._client.patch(PODS, one.pod, body, one.namespace)
        except ApiError as error:
            log.warning("cannot correct the record of %s/%s: %s", one.namespace, one.pod, error)
        else:
            log.info("%s/%s holds NIC %s, not %s", one.namespace, one.pod, one.now, one.was)
