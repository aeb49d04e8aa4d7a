"""What the parts of the node agent share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.api.core import Pod
from lockstep.devices.core.exposition import Compat
from lockstep.devices.exporter import Exporter
from lockstep.devices.sharing.accounts import Accounts
from lockstep.devices.sharing.core.exposition import exposition
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.watching import Watch
from lockstep.devices.xids import Xids
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer
from lockstep.runtime.endpoints import Ports


@dataclass(frozen=True, slots=True)
class Settings:
    """What the agent was told."""

    node: str
    ports: Ports
    compat: Compat = ""
    kubelet: Path | None = None
    """The kubelet's directory; none where there is no kubelet."""
    shares: Path | None = None
    """Where the shares of this node's containers lie; none where the node makes none."""
    kernel_log: Path | None = None
    """What the kernel's messages are read from; none where they may not be read."""
    reset_hook: Path | None = None
    """What resets a device of this node."""
    cdi: Path | None = None
    """Where container runtimes look for CDI specifications; none for the usual place."""


class Node:
    """This node, as the agent's parts see it."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.name = settings.node
        self.watch = Watch(xids=Xids(_kept(settings)))
        self.pods: Informer[Pod] = _pods(client, settings.node)
        self.granter = Granter(settings.shares) if settings.shares else None
        self.accounts = Accounts()
        self.exporter = Exporter(
            self.watch, lambda: self.pods, settings.node, settings.compat, self._more
        )

    def _more(self) -> bytes:
        """Return the metrics of network cards, and of shares."""
        from lockstep.devices.network import counters

        nics = counters.exposition(self.name, self.watch.inventory.ports, self.pods)
        if self.granter is None:
            return nics
        return nics + exposition(self.accounts.with_recent(self.granter.uses()))


def _kept(settings: Settings) -> Path | None:
    """Return the file that keeps the Xids of cards; it lies beside the shares."""
    return settings.shares.with_name("lockstep-xids.json") if settings.shares else None


def _pods(client: Client, node: str) -> Informer[Pod]:
    from lockstep.api.core import PODS

    return Informer(client, PODS, field_selector=f"spec.nodeName={node}")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the agent: it runs until cancelled, and again a while after it failed."""

    name: str
    run: Callable[[Node], Coroutine[Any, Any, None]]
    wanted: Callable[[Node], bool] = lambda _: True
    """Whether it has anything to do on this node."""
