"""What all pods of a node share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from urllib.parse import urlsplit

from lockstep.api.core import CONFIG_MAPS, SECRETS
from lockstep.devices.core.model import Card
from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.process.account_access import root_ca
from lockstep.nodes.process.cgroups import Groups
from lockstep.nodes.process.claims import Claims
from lockstep.nodes.process.contents import Contents
from lockstep.nodes.process.environment import ROOT_CA, Sources, referenced
from lockstep.nodes.process.images import SYSTEM_PATH, Entry, Images
from lockstep.nodes.process.isolation import Isolation
from lockstep.nodes.process.kept_logs import KeptLogs
from lockstep.nodes.process.names import Names
from lockstep.nodes.process.nics import Nics
from lockstep.nodes.process.ports import Ports
from lockstep.nodes.process.shares import Shares
from lockstep.nodes.process.spec import Container, Pod
from lockstep.nodes.process.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The node as its pods see it, and what the node's parts share."""

    name: str
    client: Client
    data: Path
    host_ip: str
    pods: IPv4Network
    """Where the pods' addresses are from."""
    isolation: Isolation
    groups: Groups
    ports: Ports
    images: Images
    names: Names
    tokens: Tokens
    contents: Contents
    claims: Claims
    event: Callable[[Pod, str, str, str], None]
    allocatable: dict[str, str]
    kept: KeptLogs
    shares: Shares
    cards: tuple[Card, ...] = ()
    nics: Nics = field(default_factory=Nics)

    @property
    def root(self) -> bool:
        """Tell whether the node may act as any user."""
        return os.geteuid() == 0

    def image(self, container: Container) -> Entry | None:
        """Return what the image of *container* stands for, where the container needs that."""
        found = self.images.find(container.image)
        return found if found is not None and (found.furnished or not container.command) else None

    def environment(self, hostname: str, home: str, gpus: Iterable[int]) -> dict[str, str]:
        """Return the variables that every container gets: a clean set, none of the node's own."""
        own = str(Path(sys.executable).parent)
        found = {"PATH": f"{own}:{SYSTEM_PATH}", "HOME": home, "HOSTNAME": hostname}
        server = urlsplit(self.client.config.server)
        if server.hostname:
            port = str(server.port or 443)
            found |= {
                "KUBERNETES_SERVICE_HOST": server.hostname,
                "KUBERNETES_SERVICE_PORT": port,
                "KUBERNETES_SERVICE_PORT_HTTPS": port,
            }
        if self.cards:
            # The identity holds when cards are renumbered; an index does not.
            identities = {card.index: card.uuid or str(card.index) for card in self.cards}
            visible = ",".join(identities[index] for index in gpus if index in identities)
            found |= {
                "CUDA_VISIBLE_DEVICES": visible,
                "NVIDIA_VISIBLE_DEVICES": visible or "void",
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            }
        if "uts" not in self.isolation.namespaces:
            # Without its own host name a process would look up the machine's, which need not
            # resolve; gloo is told to use the loopback interface instead.
            found["GLOO_SOCKET_IFNAME"] = "lo"
        return found

    async def sources(self, pod: Pod) -> Sources:
        """Return what *pod* refers to, as it is now."""
        maps, secrets = referenced(pod)
        space = pod.metadata.namespace
        found_maps = {ROOT_CA: root_ca(self.client.config.ca)}
        found_secrets = {}
        for name in sorted(maps):
            try:
                found_maps[name] = await self.client.get(CONFIG_MAPS, name, space)
            except NotFound:
                continue
        for name in sorted(secrets):
            try:
                found_secrets[name] = await self.client.get(SECRETS, name, space)
            except NotFound:
                continue
        return Sources(found_maps, found_secrets, await self.tokens.of(pod))
