"""The process ``lockstep agent``: one per node. What it does is a table of parts."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lockstep.agent.node import Node, Part, Settings
from lockstep.devices.core.model import Inventory
from lockstep.devices.node_writer import NodeWriter, UsageWriter
from lockstep.devices.slice_writer import SliceWriter
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.runtime.endpoints import Endpoints
from lockstep.runtime.health import Health

log = logging.getLogger(__name__)

AGAIN: Final = 5.0
"""Seconds until a part that failed is started again."""


async def _watch(node: Node) -> None:
    await node.watch.run()


async def _pods(node: Node) -> None:
    await node.pods.run()


async def _state(node: Node) -> None:
    await NodeWriter(node.client, node.name, node.watch).run()


async def _slices(node: Node) -> None:
    await SliceWriter(node.client, node.name, node.watch).run()


async def _usage(node: Node) -> None:
    uses = node.granter.uses if node.granter else list
    shown, accounts = node.exporter.shown, node.accounts
    writer = UsageWriter(node.client, node.name, node.watch, shown, uses=uses, accounts=accounts)
    await writer.run()


async def _shares(node: Node) -> None:
    granter = node.granter
    assert granter is not None  # noqa: S101 - the part is not wanted without
    stopped = threading.Event()
    granting = threading.Thread(
        target=granter.run_until, args=(stopped.is_set,), name="leases", daemon=True
    )
    granting.start()
    try:
        await asyncio.Event().wait()
    finally:
        stopped.set()
        granter.ring()


async def _unmetered(node: Node) -> None:
    from lockstep.agent.unmetered import UnmeteredPart

    await node.watch.sampled.wait()
    await UnmeteredPart(node).run()


async def _contexts(node: Node) -> None:
    from lockstep.devices.nvml import memory_by_process, session
    from lockstep.devices.sharing.contexts import Contexts

    granter = node.granter
    assert granter is not None  # noqa: S101 - the part is not wanted without
    await node.watch.sampled.wait()
    with session() as (lib, _):
        contexts = Contexts(lambda uuids: memory_by_process(lib, uuids))
        while lib is not None:
            shares = granter.shares()
            if any(one.grant.memory for one in shares):
                await asyncio.to_thread(contexts.look, shares, time.monotonic())
            await asyncio.sleep(1)
    await asyncio.Event().wait()


async def _hand_out(node: Node) -> None:
    from lockstep.devices.kubelet.gpu_manager import GpuManager

    assert node.settings.kubelet is not None  # noqa: S101 - the part is not wanted without
    await node.pods.wait_synced()
    gpus = GpuManager(
        node.client,
        node.name,
        node.watch,
        pods=lambda: node.pods,
        kubelet=node.settings.kubelet,
        cdi=node.settings.cdi,
        shares=node.settings.shares,
    )
    await gpus.run()


async def _device_files(node: Node) -> None:
    from lockstep.devices.kubelet.device_files import DeviceFiles

    assert node.settings.kubelet is not None  # noqa: S101 - the part is not wanted without
    await DeviceFiles(node.client, node.name, node.settings.kubelet).run()


async def _nics(node: Node) -> None:
    from lockstep.devices.kubelet.nics import NicPart

    assert node.settings.kubelet is not None  # noqa: S101 - the part is not wanted without
    await node.pods.wait_synced()
    part = NicPart(
        node.client,
        node.name,
        node.watch,
        pods=lambda: node.pods,
        kubelet=node.settings.kubelet,
    )
    await part.run()


async def _kernel_log(node: Node) -> None:
    from lockstep.health.agent import KernelLogPart

    assert node.settings.kernel_log is not None  # noqa: S101 - the part is not wanted without
    found = node.watch
    part = KernelLogPart(
        node.client, node.name, node.settings.kernel_log, lambda: _addresses(found.inventory)
    )
    await part.run()


async def _signals(node: Node) -> None:
    from lockstep.health.signals import SignalsPart

    part = SignalsPart(node.client, node.name, lambda: _readings(node), lambda: _expected(node))
    await part.run()


async def _returning(node: Node) -> None:
    from lockstep.health.returning import ReturnPart

    hook, watch = node.settings.reset_hook, node.watch
    await ReturnPart(node.client, node.name, hook, watch.cleared, watch.fence).run()


def _readings(node: Node) -> dict[str, dict[str, float]]:
    """Return what counters and states of this node's devices are now, by device."""
    from lockstep.devices import xids
    from lockstep.health import signals

    found = {
        f"gpu/{card.index}": dict(one.values)
        for card, one in node.watch.samples()
        if one.values.keys() - xids.KEYS
    }
    for port in node.watch.inventory.ports:
        found[f"nic/{port.index}"] = signals.port_counters(port.name, port.interfaces)
    return {**found, "": signals.descriptors()}


def _expected(node: Node) -> dict[str, str]:
    """Return what should be read, by device."""
    found = node.watch.inventory
    cards = {f"gpu/{card.index}": "NVML" for card in found.cards if card.vendor == "nvidia"}
    return cards | {f"nic/{port.index}": "counters in sysfs" for port in found.ports}


async def _network(node: Node) -> None:
    from lockstep.devices.network.part import NetworkPart

    await NetworkPart(node.client, node.name).run()


async def _rails(node: Node) -> None:
    from lockstep.devices.network.addressing import AddressPart

    await AddressPart(node.client, node.name, lambda: node.pods).run()


def _addresses(found: Inventory) -> dict[str, str]:
    """Return the node's devices by PCI address, as findings name them."""
    from lockstep.health.core.findings import pci

    cards = {pci(card.pci): f"gpu/{card.index}" for card in found.cards if card.pci}
    return cards | {pci(port.pci): f"nic/{port.index}" for port in found.ports if port.pci}


PARTS: Final = (
    Part("cards", _watch),
    Part("pods", _pods),
    Part("node", _state),
    Part("slices", _slices),
    Part("usage", _usage),
    Part("shares", _shares, lambda node: node.granter is not None),
    Part("contexts", _contexts, lambda node: node.granter is not None),
    Part("unmetered", _unmetered, lambda node: node.granter is not None),
    Part("kernel-log", _kernel_log, lambda node: node.settings.kernel_log is not None),
    Part("signals", _signals),
    Part("returning", _returning),
    Part("network", _network),
    Part("rails", _rails, lambda _: os.geteuid() == 0),
    Part("device-plugin", _hand_out, lambda node: node.settings.kubelet is not None),
    Part("nics", _nics, lambda node: node.settings.kubelet is not None),
    Part("device-files", _device_files, lambda node: node.settings.kubelet is not None),
)
"""Everything that the agent does. A capability adds its line here."""


async def run(*, kubeconfig: Path | None, settings: Settings, ready: Callable[[str], None]) -> None:
    """Run the node agent until cancelled.

    Raises:
        ConfigError: when no cluster is configured.
        OSError: when a port is taken.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        node = Node(client, settings)
        await node.watch.start()
        health = Health(lambda: _problems(node), node.exporter.text)
        endpoints = Endpoints(settings.ports, health, client)
        await endpoints.start()
        wanted = [part for part in PARTS if part.wanted(node)]
        tasks = [asyncio.create_task(_keep(part, node), name=part.name) for part in wanted]
        try:
            port = endpoints.ports.local
            cards = len(node.watch.inventory.cards)
            ready(f"ready agent of {settings.node}: {cards} devices, metrics on port {port}")
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await endpoints.close()


async def _keep(part: Part, node: Node) -> None:
    """Run a part again and again: the fault of one is no other's."""
    while True:
        try:
            await part.run(node)
            return
        except Exception:
            log.exception("the part %s failed; again in %.0f s", part.name, AGAIN)
            await asyncio.sleep(AGAIN)


def _problems(node: Node) -> list[str]:
    found = []
    if node.watch.inventory.cards and not node.watch.sampled.is_set():
        found.append("the devices have not been read yet")
    if not node.pods.synced:
        found.append("the pods of this node are not known yet")
    return found
