"""The process node from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from lockstep.api.core import CONFIG_MAPS, ObjectReference
from lockstep.devices import finding
from lockstep.devices.core import stated
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import ApiError
from lockstep.kube.events import Recorder
from lockstep.nodes.process import addresses, certificates, isolation, machine_info
from lockstep.nodes.process.admission import Room
from lockstep.nodes.process.agent import Agent, amounts
from lockstep.nodes.process.cgroups import Groups
from lockstep.nodes.process.claims import Claims
from lockstep.nodes.process.contents import Contents
from lockstep.nodes.process.data_cache import DataCache
from lockstep.nodes.process.images import Images, load
from lockstep.nodes.process.kept_logs import KeptLogs
from lockstep.nodes.process.log_server import LogServer
from lockstep.nodes.process.names import Names
from lockstep.nodes.process.nics import Nics
from lockstep.nodes.process.orders import DEFAULT_MESSAGE_PATH
from lockstep.nodes.process.ports import Ports
from lockstep.nodes.process.registration import Description, Registration
from lockstep.nodes.process.remote_server import RemoteServer
from lockstep.nodes.process.shares import Shares
from lockstep.nodes.process.shelf import PodShelf
from lockstep.nodes.process.spec import Pod
from lockstep.nodes.process.surroundings import Surroundings
from lockstep.nodes.process.tokens import Tokens
from lockstep.nodes.process.volume_store import shared_memory

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Where:
    """Where a node and its pods are reached: on this machine alone, unless it is told."""

    address: str = LOOPBACK
    pods: str = addresses.LOOPBACK
    """Subnet of the pods' addresses; all of them must be local to this machine."""

    @property
    def network(self) -> IPv4Network:
        """Return the pods' subnet.

        Raises:
            ValueError: when it is no subnet of IPv4.
        """
        return IPv4Network(self.pods)


async def run(
    *,
    kubeconfig: Path | None,
    data: Path,
    name: str | None = None,
    hide: Sequence[Path] = (),
    by_namespace: Path | None = None,
    images: Path | None = None,
    data_cache: Path | None = None,
    pair: certificates.Pair | None = None,
    where: Where = Where(),
    ready: Callable[[str], None],
) -> None:
    """Be a node until cancelled; then stop the pods' containers and say that the node stopped.

    Killed outright, the node leaves its containers running, and adopts them when it is started
    again on the same *data*. Containers see *data* and the directories *hide* empty. Of
    *by_namespace* pods mount what is their namespace's. *images* is a table of images that goes
    before the shipped one. *data_cache* is the kubeconfig of the data cache, which the node starts
    once a dataset wants one. The node serves the API server with *pair*; without one, with a pair
    that it signs itself. *where* it and its pods are reached.

    Raises:
        BadTable: when *images* cannot be used.
        OSError: when *data* is in use by another process node, or cannot be used.
    """
    table = load(images)
    with _alone(data) as place:
        parts = (by_namespace,) if by_namespace is not None else ()
        hidden = _resolved((*hide, place, shared_memory(), *parts))
        (own,) = _resolved(parts) or ("",)
        allowed = replace(isolation.find(), hidden=hidden, by_namespace=own)
        if not allowed.mounts:
            log.warning("containers can read %s: %s", ", ".join(hidden), allowed.problem)
        async with Client(ClusterConfig.load(kubeconfig)) as client:
            node = _Node(client, place, machine_info.node_name(name), allowed, table, where=where)
            node.pair = pair
            config = data_cache or _cache_config(kubeconfig)
            node.give(DataCache(client, node.name, config, place / "data", hidden))
            await node.run(ready)


def _cache_config(kubeconfig: Path | None) -> Path | None:
    """Return the kubeconfig of the data cache: the one beside the node's own, else the same."""
    beside = kubeconfig.with_name("data-cache.kubeconfig") if kubeconfig is not None else None
    return beside if beside is not None and beside.exists() else kubeconfig


def _resolved(places: Sequence[Path]) -> tuple[str, ...]:
    """Return each of *places* once, by the name that it has without links."""
    return tuple(dict.fromkeys(str(one.resolve()) for one in places))


@contextlib.contextmanager
def _alone(data: Path) -> Iterator[Path]:
    """Make the directory and hold its lock.

    Raises:
        OSError: when another process node holds it.
    """
    data = data.resolve()
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(data / "node.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise OSError(f"{data} is in use by another process node") from None
    try:
        yield data
    finally:
        os.close(fd)


class _Node:
    """The parts of the node, put together."""

    def __init__(
        self,
        client: Client,
        data: Path,
        name: str,
        allowed: isolation.Isolation,
        images: Images,
        *,
        where: Where,
    ) -> None:
        self.client, self.data, self.name, self.address = client, data, name, where.address
        self.data_cache: DataCache
        self.pair: certificates.Pair | None = None
        self.recorder = Recorder(client, "process-node")
        self.inventory = finding.find(cpus=os.sched_getaffinity(0))
        # Two nodes of one name, each on its own data, must not share their groups.
        whose = f"{name}-{hashlib.sha256(bytes(data)).hexdigest()[:8]}"
        self.groups = Groups(whose, fence=bool(self.inventory.cards or self.inventory.ports))
        self.ports = Ports(whose, self.groups)
        self.names = Names(client)
        self.contents = Contents(client)
        plain = self.describe(0)
        cards = tuple(stated.gpu_cards(self.inventory))
        surroundings = Surroundings(
            name=name,
            client=client,
            data=data,
            host_ip=where.address,
            pods=where.network,
            isolation=allowed,
            groups=self.groups,
            ports=self.ports,
            images=images,
            names=self.names,
            tokens=Tokens(client),
            contents=self.contents,
            claims=Claims(client, name, allowed.hidden, allowed.by_namespace),
            event=self.event,
            allocatable=plain.allocatable,
            kept=KeptLogs(data / "kept"),
            shares=Shares(data / "shares", cards, mounts=allowed.mounts),
            cards=cards,
            nics=Nics(self.inventory.ports),
        )
        self.agent = Agent(surroundings, Room(amounts(plain.allocatable), plain.labels, name))
        _offer_message_file(allowed)

    def give(self, cache: DataCache) -> None:
        """Let the node keep datasets with *cache*."""
        self.data_cache = cache
        self.agent.node.claims.no_cache = lambda: cache.problem

    def describe(self, port: int) -> Description:
        """Return what the node says of itself."""
        problems = tuple(f"{key}: {why}" for key, why in self.groups.problems.items())
        return Description(self.name, self.address, port, self.inventory, problems)

    def event(self, pod: Pod, kind: str, reason: str, message: str) -> None:
        """Record an event about *pod*."""
        meta = pod.metadata
        about = ObjectReference(
            api_version="v1", kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid
        )
        self.recorder.event(about, "Normal" if kind == "Normal" else "Warning", reason, message)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve logs, register, run pods; until cancelled."""
        pair = self.pair or certificates.own_pair(self.data / "pki", self.name, self.address)
        context = certificates.serving_context(pair, await self._clients())
        shelf = PodShelf(self.agent)
        server = LogServer(shelf, context, self.address, RemoteServer(shelf, shelf).routes())
        described = self.describe(await server.start())
        told = replace(described, caches=not self.data_cache.problem)
        registration = Registration(self.client, told)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.recorder.close)
            stack.push_async_callback(server.stop)
            running = (self.names.run(), self.agent.run(), self.data_cache.run())
            parts = [asyncio.ensure_future(one) for one in running]
            try:
                await self._run_parts(parts, registration, ready)
            except asyncio.CancelledError:
                # Told to stop, the node ends its pods; after a fault of its own it leaves them
                # running, to be adopted by the next.
                await self.agent.stop()
                await registration.stop()
                raise
            finally:
                self.contents.close()
                for part in parts:
                    part.cancel()
                await asyncio.gather(*parts, return_exceptions=True)
                self.ports.close()
                self.groups.close()

    async def _run_parts(
        self,
        parts: list[asyncio.Task[None]],
        registration: Registration,
        ready: Callable[[str], None],
    ) -> None:
        """Say that the node is ready once it is, and watch over its parts, which do not end."""

        async def begin() -> None:
            waits = (self.names.wait_synced(), self.agent.wait_ready(), registration.register())
            await asyncio.gather(*waits)
            ready(f"ready node {self.name}")
            await registration.run()

        parts.append(asyncio.ensure_future(begin()))
        # Unlike gather, wait leaves the parts alone when the node is told to stop: the containers
        # are to end while their statuses can still be told.
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*done)

    async def _clients(self) -> bytes:
        """Return the authority whose certificates may ask for logs."""
        try:
            found = await self.client.get(
                CONFIG_MAPS, "extension-apiserver-authentication", "kube-system"
            )
        except ApiError as error:
            log.debug("no published authority for clients: %s", error)
        else:
            if found.data.get("client-ca-file"):
                return found.data["client-ca-file"].encode()
        if self.client.config.ca is None:
            raise OSError("the kubeconfig names no authority to check the API server's requests")
        return self.client.config.ca


def _offer_message_file(allowed: isolation.Isolation) -> None:
    """Make the file on which containers' termination messages are mounted, where one may."""
    if allowed.mounts and os.geteuid() == 0:
        with contextlib.suppress(OSError):
            Path(DEFAULT_MESSAGE_PATH).touch(mode=0o600)
