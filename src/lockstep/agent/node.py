"""What the parts of the node agent share."""

from __future__ import annotations

from pathlib import Path

from lockstep.agent.settings import Settings
from lockstep.api.core import Pod
from lockstep.devices import calls, crashes
from lockstep.devices.exporter import Exporter
from lockstep.devices.sharing.accounts import Accounts
from lockstep.devices.sharing.core.exposition import exposition
from lockstep.devices.sharing.granting import Granter
from lockstep.devices.watching import Watch
from lockstep.devices.xids import Xids
from lockstep.kube.client import Client
from lockstep.kube.informer import Informer


class Node:
    """This node, as the agent's parts see it."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.name = settings.node
        if settings.shares is not None:
            calls.refuse(crashes.noted(settings.shares.parent))
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
