"""The process ``lockstep agent``: one per node. What it does is a table of parts."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

from lockstep.agent.node import Node
from lockstep.agent.settings import Settings
from lockstep.devices.core.model import Inventory
from lockstep.devices.node_writer import NodeWriter, UsageWriter
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.slice_writer import SliceWriter
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.runtime.endpoints import Endpoints
from lockstep.runtime.health import Health

log = logging.getLogger(__name__)

AGAIN: Final = 5.0
"""Seconds until a part that failed is started again."""


async def _usage(node: Node) -> None:
    uses = node.granter.uses if node.granter else list
    shown, accounts = node.exporter.shown, node.accounts
    writer = UsageWriter(node.client, node.name, node.watch, shown, uses=uses, accounts=accounts)
    await writer.run()


async def _shares(_: Node, granter: Granter) -> None:
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


async def _unmetered(node: Node, _: Granter) -> None:
    from lockstep.agent.unmetered import UnmeteredPart

    await node.watch.sampled.wait()
    await UnmeteredPart(node).run()


async def _contexts(node: Node, granter: Granter) -> None:
    from lockstep.devices.nvml import memory_by_process, session
    from lockstep.devices.sharing.contexts import Contexts

    await node.watch.sampled.wait()
    with session() as (lib, _):
        contexts = Contexts(lambda uuids: memory_by_process(lib, uuids))
        while lib is not None:
            shares = granter.shares()
            if any(one.grant.memory for one in shares):
                await asyncio.to_thread(contexts.look, shares, time.monotonic())
            await asyncio.sleep(1)
    await asyncio.Event().wait()


async def _hand_out(node: Node, kubelet: Path) -> None:
    from lockstep.devices.kubelet.gpu_manager import GpuManager

    settings = node.settings
    await node.pods.wait_synced()
    gpus = GpuManager(
        node.client,
        node.name,
        node.watch,
        pods=lambda: node.pods,
        kubelet=kubelet,
        cdi=settings.cdi,
        shares=settings.shares,
    )
    await gpus.run()


async def _device_files(node: Node, kubelet: Path) -> None:
    from lockstep.devices.kubelet.device_files import DeviceFiles

    await DeviceFiles(node.client, node.name, kubelet).run()


async def _nics(node: Node, kubelet: Path) -> None:
    from lockstep.devices.kubelet.nics import NicPart

    await node.pods.wait_synced()
    pods = node.pods
    await NicPart(node.client, node.name, node.watch, pods=lambda: pods, kubelet=kubelet).run()


async def _kernel_log(node: Node, file: Path) -> None:
    from lockstep.health.agent import KernelLogPart

    watch = node.watch
    await KernelLogPart(node.client, node.name, file, lambda: _addresses(watch.inventory)).run()


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


def parts(node: Node) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return all that the agent does on this node, by name. A capability adds its line here."""
    client, name, watch, settings = node.client, node.name, node.watch, node.settings
    found: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "cards": watch.run,
        "pods": node.pods.run,
        "node": lambda: NodeWriter(client, name, watch).run(),
        "slices": lambda: SliceWriter(client, name, watch).run(),
        "usage": partial(_usage, node),
        "signals": partial(_signals, node),
        "returning": partial(_returning, node),
        "network": partial(_network, node),
    }
    if (granter := node.granter) is not None:
        found["shares"] = partial(_shares, node, granter)
        found["contexts"] = partial(_contexts, node, granter)
        found["unmetered"] = partial(_unmetered, node, granter)
    if (log_file := settings.kernel_log) is not None:
        found["kernel-log"] = partial(_kernel_log, node, log_file)
    if os.geteuid() == 0:
        found["rails"] = partial(_rails, node)
    if (kubelet := settings.kubelet) is not None:
        found["device-plugin"] = partial(_hand_out, node, kubelet)
        found["nics"] = partial(_nics, node, kubelet)
        found["device-files"] = partial(_device_files, node, kubelet)
    return found


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
        tasks = [asyncio.create_task(_keep(*part)) for part in parts(node).items()]
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


async def _keep(name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a part again and again: the fault of one is no other's."""
    while True:
        try:
            await part()
            return
        except Exception:
            log.exception("the part %s failed; again in %.0f s", name, AGAIN)
            await asyncio.sleep(AGAIN)


def _problems(node: Node) -> list[str]:
    found = []
    if node.watch.inventory.cards and not node.watch.sampled.is_set():
        found.append("the devices have not been read yet")
    if not node.pods.synced:
        found.append("the pods of this node are not known yet")
    return found
