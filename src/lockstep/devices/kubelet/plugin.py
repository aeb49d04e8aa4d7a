"""The device plugin of one resource, for kubelet's interface v1beta1."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc

from lockstep.compat.vendors import VENDORS, Vendor
from lockstep.devices.core import cdi
from lockstep.devices.core.model import Card, Inventory
from lockstep.devices.kubelet.driver_sockets import Methods, serve_at, unary
from lockstep.devices.kubelet.wire import deviceplugin_pb2 as wire
from lockstep.keys.files import replace_file

log = logging.getLogger(__name__)

VERSION = "v1beta1"
SERVICE = "v1beta1.DevicePlugin"
LONGEST_SOCKET = 107
"""Characters in the path of a unix socket."""
LOOK_EVERY = 1.0
"""Seconds between two looks whether kubelet was restarted."""

Prefer = Callable[[Collection[str], Sequence[str], int], Awaitable[list[str]]]

Variables = Callable[[Sequence[Card]], dict[str, str]]
"""Returns what a container is told of the devices that it gets."""


class Devices(Protocol):
    """What a plugin offers, and who is told when it changes."""

    @property
    def inventory(self) -> Inventory:
        """Return what there is now."""
        ...

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call *listener* whenever it changed."""
        ...


class Denied(Exception):
    """A container does not get what kubelet asks for; the message says why."""


def socket_name(resource: str, directory: Path) -> str:
    """Return the name of a resource's socket; a long one is cut, told apart by a digest."""
    name = resource.replace("/", "_")
    room = LONGEST_SOCKET - len(f"{directory}/lockstep-.sock")
    if len(name) > room:
        digest = hashlib.sha256(resource.encode()).hexdigest()[:8]
        name = name[: max(0, room - len(digest))] + digest
    return f"lockstep-{name}.sock"


class Plugin:
    """Offers the cards of one resource to kubelet, and registers anew when kubelet restarted.

    *claimed* returns what holds cards in another way, in words, by the card.
    """

    def __init__(
        self,
        watch: Devices,
        resource: str,
        kubelet: Path,
        prefer: Prefer,
        *,
        claimed: Callable[[], Mapping[str, str]] = dict,
        variables: Variables | None = None,
        cdi_directory: Path | None = None,
    ) -> None:
        self._watch, self.resource = watch, resource
        self._directory = kubelet / "device-plugins"
        self._prefer, self._claimed = prefer, claimed
        self._variables = variables or _visible
        self._cdi, self._written = cdi_directory, list[Card]()
        self._socket = self._directory / socket_name(resource, self._directory)
        self._changed = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self.registered = asyncio.Event()
        self.allocated = asyncio.Event()
        watch.subscribe(self._note)

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            server = await serve_at(self._socket, {SERVICE: self._methods()})
            try:
                before = await self._register()
                await self._until_restart(before)
                log.info("kubelet was restarted; registering %s again", self.resource)
            except (grpc.aio.AioRpcError, OSError) as error:
                log.debug("kubelet does not take %s yet: %s", self.resource, error)
                await asyncio.sleep(LOOK_EVERY)
            finally:
                self.registered.clear()
                await server.stop(0)

    @property
    def was_here(self) -> bool:
        """Return whether this plugin has been on this node before: it left its socket."""
        return self._socket.exists()

    async def _until_restart(self, before: tuple[int, int]) -> None:
        """Wait until kubelet is another: it then removed our socket and made its own anew."""
        same = True
        while same:
            await asyncio.sleep(LOOK_EVERY)
            same = self._socket.exists() and _identity(self._kubelet) == before

    @property
    def _kubelet(self) -> Path:
        return self._directory / "kubelet.sock"

    async def _register(self) -> tuple[int, int]:
        identity = _identity(self._kubelet)
        async with grpc.aio.insecure_channel(f"unix:{self._kubelet}") as channel:
            register = channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=wire.RegisterRequest.SerializeToString,
                response_deserializer=wire.Empty.FromString,
            )
            request = wire.RegisterRequest(
                version=VERSION,
                endpoint=self._socket.name,
                resource_name=self.resource,
                options=_options(),
            )
            await register(request, timeout=5.0)
        log.info("registered %s with kubelet", self.resource)
        self.registered.set()
        return identity

    def _methods(self) -> Methods:
        return {
            "GetDevicePluginOptions": unary(self._get_options, wire.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                self._list, wire.Empty.FromString, lambda answer: answer.SerializeToString()
            ),
            "GetPreferredAllocation": unary(self._preferred, wire.PreferredAllocationRequest),
            "Allocate": unary(self._allocate, wire.AllocateRequest),
            "PreStartContainer": unary(self._start, wire.PreStartContainerRequest),
        }

    # --- what kubelet calls ---

    async def _get_options(self, _: wire.Empty, __: object) -> wire.DevicePluginOptions:
        return _options()

    async def _list(self, _: wire.Empty, __: object) -> AsyncIterator[wire.ListAndWatchResponse]:
        told: list[wire.Device] | None = None
        while True:
            devices = self.offered()
            if devices != told:
                told = devices
                yield wire.ListAndWatchResponse(devices=devices)
            async with self._changed:
                await self._changed.wait()

    async def _preferred(
        self, request: wire.PreferredAllocationRequest, _: object
    ) -> wire.PreferredAllocationResponse:
        answers = []
        for one in request.container_requests:
            ids = await self._prefer(
                set(one.available_deviceIDs),
                list(one.must_include_deviceIDs),
                one.allocation_size,
            )
            answers.append(wire.ContainerPreferredAllocationResponse(deviceIDs=ids))
        return wire.PreferredAllocationResponse(container_responses=answers)

    async def _allocate(self, request: wire.AllocateRequest, context: Any) -> wire.AllocateResponse:
        answers = []
        for one in request.container_requests:
            try:
                answers.append(await self.given(list(one.devices_ids)))
            except Denied as denied:
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(denied))
        self.allocated.set()
        return wire.AllocateResponse(container_responses=answers)

    async def _start(
        self, _: wire.PreStartContainerRequest, __: object
    ) -> wire.PreStartContainerResponse:
        return wire.PreStartContainerResponse()

    # --- what is offered and given ---

    def offered(self) -> list[wire.Device]:
        """Return the devices as kubelet is told of them."""
        return [device(card, card.uuid) for card in self.cards() if card.uuid]

    async def given(self, ids: Sequence[str]) -> wire.ContainerAllocateResponse:
        """Return what a container gets with the devices *ids*.

        Raises:
            Denied: when it may not have them.
        """
        cards = {card.uuid: card for card in self.cards()}
        if unknown := [identity for identity in ids if identity not in cards]:
            raise Denied(f"this node has no {self.resource} {', '.join(unknown)}")
        for identity, holder in self._claimed().items():
            if identity in ids:
                raise Denied(f"{self.resource} {identity} is held by {holder}")
        given = [cards[identity] for identity in ids]
        answer = grant(given, self._variables(given))
        if self._specify():
            # Runtimes that know no CDI go by the files and variables.
            answer.cdi_devices.extend(wire.CDIDevice(name=cdi.card_device(one)) for one in given)
        return answer

    def _specify(self) -> bool:
        """Write the specification of the cards; return whether runtimes find it."""
        cards = [card for card in self.cards() if card.uuid and card.nodes]
        if self._cdi is None or not cards:
            return False
        file = self._cdi / cdi.CARDS_FILE
        spec = cdi.cards_spec(cards, lambda one: Path(one).exists())
        if not spec["devices"]:
            return False
        if cards != self._written or not file.exists():
            try:
                replace_file(file, json.dumps(spec).encode())
            except OSError as error:
                log.warning("no CDI devices are named, %s cannot be written: %s", file, error)
                return False
            self._written = cards
        return True

    def cards(self) -> list[Card]:
        """Return the cards that are handed out here."""
        cards = self._watch.inventory.cards
        return [one for one in cards if one.resource == self.resource and not one.mig]

    # --- helpers ---

    def _note(self) -> None:
        self._loop.create_task(self._wake())

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _options() -> wire.DevicePluginOptions:
    return wire.DevicePluginOptions(get_preferred_allocation_available=True)


def device(card: Card, identity: str) -> wire.Device:
    """Return a card, or a part of it, as kubelet is told of it."""
    numa = [wire.NUMANode(ID=card.numa)] if card.numa >= 0 else []
    return wire.Device(
        ID=identity,
        health="Unhealthy" if card.trouble else "Healthy",
        topology=wire.TopologyInfo(nodes=numa) if numa else None,
    )


def grant(
    cards: Sequence[Card], variables: dict[str, str] | None = None
) -> wire.ContainerAllocateResponse:
    """Return what a container gets: the cards' device files, and *variables* or those that name
    accelerators.
    """
    vendor = _vendor(cards)
    files = [node for card in cards for node in card.nodes]
    files += vendor.shared if vendor else ()
    return wire.ContainerAllocateResponse(
        envs=_visible(cards) if variables is None else variables,
        devices=[
            wire.DeviceSpec(container_path=file, host_path=file, permissions="rw")
            for file in dict.fromkeys(files)
            if Path(file).exists()
        ],
    )


def _visible(cards: Sequence[Card]) -> dict[str, str]:
    """Return the variables that name accelerators."""
    vendor = _vendor(cards)
    named = ",".join(card.uuid for card in cards)
    variables = {vendor.visible: named} if vendor and vendor.visible else {}
    if vendor and vendor.name == "nvidia":
        variables["CUDA_VISIBLE_DEVICES"] = named
    return variables


def _vendor(cards: Sequence[Card]) -> Vendor | None:
    return next((one for one in VENDORS if one.name == cards[0].vendor), None)


def _identity(path: Path) -> tuple[int, int]:
    """Return what tells a socket from the one that takes its place."""
    found = path.stat()
    return found.st_ino, found.st_ctime_ns
