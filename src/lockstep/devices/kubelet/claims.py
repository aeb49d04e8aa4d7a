"""What a kubelet asks of the driver: to prepare the devices of claims, and to take them back.

A claim that is prepared is a file of this node, written as a whole before kubelet hears of it. A
driver that was killed between any two steps is asked again, and does the same again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import grpc
import msgspec

from lockstep.api.claims import DRIVER, RESOURCE_CLAIMS, AllocatedDevice
from lockstep.api.wire import Wire
from lockstep.devices.core import cdi
from lockstep.devices.core.model import Card
from lockstep.devices.core.slices import by_name
from lockstep.devices.kubelet.driver_sockets import DriverSockets, unary
from lockstep.devices.kubelet.wire import dra_pb2 as wire
from lockstep.devices.kubelet.wire import drahealth_pb2 as health
from lockstep.devices.watching import Watch
from lockstep.keys.files import replace_file
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound

log = logging.getLogger(__name__)

SERVICE: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
VERSION: Final = "v1.DRAPlugin"
HEALTH: Final = "v1alpha1.DRAResourceHealth"
HEALTH_EVERY: Final = 10.0
"""Seconds between two reports without news; after 30 without any, kubelet knows no health."""
RESTORE_EVERY: Final = 5.0
"""Seconds until the API server is asked again about claims that it could not be asked about."""
CDI: Final = Path("/var/run/cdi")
"""Where container runtimes look for specifications that come and go."""

Holders = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns by card (UUID) the pod that has it through the device plugin."""


class Refused(Exception):
    """A claim cannot be prepared; the message says why."""


class Kept(Wire, frozen=True):
    """A prepared claim, by namespace and name, with the UUIDs of its cards."""

    claim: str
    cards: list[str]


class Prepared:
    """The claims that are prepared on this node, as files: they outlive the driver."""

    def __init__(self, kubelet: Path) -> None:
        self.place = kubelet / "plugins" / DRIVER

    def claims(self) -> dict[str, Kept]:
        """Return the claims by UID."""
        found: dict[str, Kept] = {}
        for file in self.place.glob("claims/*.json"):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                found[file.stem] = msgspec.json.decode(file.read_bytes(), type=Kept)
        return found

    def cards(self) -> dict[str, str]:
        """Return by card (UUID) the claim that has it."""
        return {card: one.claim for one in self.claims().values() for card in one.cards}

    def keep(self, uid: str, claim: str, cards: list[str]) -> None:
        """Write down a claim."""
        whole = msgspec.json.encode(Kept(claim, cards))
        replace_file(self.place / "claims" / f"{uid}.json", whole)

    def drop(self, uid: str) -> None:
        """Forget a claim; one that is not there is forgotten already."""
        (self.place / "claims" / f"{uid}.json").unlink(missing_ok=True)


class Claims:
    """The driver's two sockets: one for kubelet's plugin watcher, one for its requests."""

    def __init__(
        self,
        client: Client,
        node: str,
        watch: Watch,
        *,
        kubelet: Path,
        holders: Holders,
        cdi_directory: Path = CDI,
    ) -> None:
        self._client, self._node, self._watch = client, node, watch
        self._holders, self._cdi = holders, cdi_directory
        self.prepared = Prepared(kubelet)
        self._one = asyncio.Lock()
        self._told: set[asyncio.Event] = set()
        watch.subscribe(self._note)
        self.sockets = DriverSockets(
            kubelet,
            DRIVER,
            sort="DRAPlugin",
            versions=[VERSION, HEALTH],
            services={SERVICE: self._driver(), HEALTH: self._health()},
            socket="dra.sock",
        )

    async def run(self) -> None:
        """Serve until cancelled; kubelet finds the sockets by itself, also after a restart."""
        await asyncio.gather(self.sockets.run(), self._restore())

    def _driver(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "NodePrepareResources": unary(self._prepare, wire.NodePrepareResourcesRequest),
            "NodeUnprepareResources": unary(self._unprepare, wire.NodeUnprepareResourcesRequest),
        }

    def _health(self) -> dict[str, grpc.RpcMethodHandler]:
        request = health.NodeWatchResourcesRequest
        stream = grpc.unary_stream_rpc_method_handler(
            self._report, request.FromString, lambda answer: answer.SerializeToString()
        )
        return {"NodeWatchResources": stream}

    # --- after a restart ---

    async def _restore(self) -> None:
        """Forget prepared claims that are gone; write the others' specifications again.

        A reboot empties the directory of specifications, and kubelet does not ask anew for a
        claim that it knows to be prepared.
        """
        waiting = self.prepared.claims()
        while waiting:
            for uid, kept in list(waiting.items()):
                try:
                    async with self._one:
                        await self._restore_one(uid, kept.claim)
                except (ApiError, OSError) as error:
                    log.debug("ResourceClaim %s cannot be asked for yet: %s", kept.claim, error)
                else:
                    del waiting[uid]
            if waiting:
                await asyncio.sleep(RESTORE_EVERY)

    async def _restore_one(self, uid: str, claim: str) -> None:
        if uid not in self.prepared.claims():
            return
        namespace, _, name = claim.partition("/")
        try:
            results = await self._allocated(wire.Claim(namespace=namespace, name=name, uid=uid))
        except (Refused, NotFound) as error:
            log.warning("ResourceClaim %s is not prepared any more: %s", claim, error)
            self._drop(uid)
            return
        known, given = by_name(self._watch.inventory), dict[str, list[Card]]()
        for one in results:
            if one.device in known:
                given.setdefault(one.request, []).append(known[one.device])
        self._specify(uid, given)

    # --- what kubelet calls ---

    def _note(self) -> None:
        for told in self._told:
            told.set()

    async def _report(
        self, _: health.NodeWatchResourcesRequest, __: object
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        """Report each device's health whenever it changed, and every few seconds."""
        news = asyncio.Event()
        self._told.add(news)
        try:
            while True:
                news.clear()
                devices = by_name(self._watch.inventory).items()
                yield health.NodeWatchResourcesResponse(
                    devices=[_health_of(self._node, name, card) for name, card in devices]
                )
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), HEALTH_EVERY)
        finally:
            self._told.discard(news)

    async def _prepare(
        self, request: wire.NodePrepareResourcesRequest, _: object
    ) -> wire.NodePrepareResourcesResponse:
        answer = wire.NodePrepareResourcesResponse()
        for claim in request.claims:
            async with self._one:
                try:
                    one = await self._prepare_one(claim)
                except (Refused, ApiError, OSError) as error:
                    text = f"ResourceClaim {claim.namespace}/{claim.name}: {error}"
                    log.warning("cannot prepare %s", text)
                    one = wire.NodePrepareResourceResponse(error=text)
            answer.claims[claim.uid].CopyFrom(one)
        return answer

    async def _unprepare(
        self, request: wire.NodeUnprepareResourcesRequest, _: object
    ) -> wire.NodeUnprepareResourcesResponse:
        answer = wire.NodeUnprepareResourcesResponse()
        for claim in request.claims:
            async with self._one:
                self._drop(claim.uid)
            answer.claims[claim.uid].CopyFrom(wire.NodeUnprepareResourceResponse())
        return answer

    async def _prepare_one(self, claim: wire.Claim) -> wire.NodePrepareResourceResponse:
        results = await self._allocated(claim)
        known = by_name(self._watch.inventory)
        given: dict[str, list[Card]] = {}
        for one in results:
            card = known.get(one.device)
            if card is None:
                raise Refused(f"this node has no device {one.device}")
            if card.trouble:
                raise Refused(f"device {one.device} must not be used: {card.trouble}")
            given.setdefault(one.request, []).append(card)
        taken = {one.device for one in results if not one.admin_access}
        await self._require_free(claim.uid, f"{claim.namespace}/{claim.name}", taken)
        cards = [known[name].uuid for name in sorted(taken)]
        self.prepared.keep(claim.uid, f"{claim.namespace}/{claim.name}", cards)
        self._specify(claim.uid, given)
        return wire.NodePrepareResourceResponse(
            devices=[
                wire.Device(
                    request_names=[one.request],
                    pool_name=one.pool,
                    device_name=one.device,
                    cdi_device_ids=[cdi.device_of(claim.uid, one.request)],
                )
                for one in results
            ]
        )

    def _specify(self, uid: str, given: Mapping[str, list[Card]]) -> None:
        """Write a claim's specification for container runtimes."""
        spec = cdi.spec_of(uid, given, lambda file: Path(file).exists())
        replace_file(self._cdi / cdi.file_name(uid), json.dumps(spec).encode())

    def _drop(self, uid: str) -> None:
        """Forget a claim; a driver that was killed between its two files is asked again."""
        (self._cdi / cdi.file_name(uid)).unlink(missing_ok=True)
        self.prepared.drop(uid)

    async def _allocated(self, claim: wire.Claim) -> list[AllocatedDevice]:
        """Return our devices of a claim.

        Raises:
            Refused: when it is not the claim that kubelet means, or has no devices.
        """
        found = await self._client.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        if found.metadata.uid != claim.uid:
            raise Refused(f"it is another one by now (UID {found.metadata.uid})")
        allocation = found.status.allocation
        if allocation is None:
            raise Refused("it has no devices; its scheduler has to allocate it first")
        ours = [one for one in allocation.devices.results if one.driver == DRIVER]
        return [one for one in ours if one.pool == self._node]

    async def _require_free(self, uid: str, claim: str, names: set[str]) -> None:
        """Require that no pod has a card through the device plugin, and no other claim."""
        held = await self._holders()
        claimed = self.prepared.cards()
        for name, card in by_name(self._watch.inventory).items():
            if name not in names:
                continue
            if pod := held.get(card.uuid):
                raise Refused(f"device {name} is held by pod {pod}")
            if (other := claimed.get(card.uuid, claim)) != claim:
                raise Refused(f"device {name} is held by ResourceClaim {other}")


def _health_of(pool: str, name: str, card: Card) -> health.DeviceHealth:
    """Return a card's health as kubelet hands it on to the pods that have the card."""
    return health.DeviceHealth(
        device=health.DeviceIdentifier(pool_name=pool, device_name=name),
        health=health.UNHEALTHY if card.trouble else health.HEALTHY,
        last_updated_time=int(time.time()),
        message=card.trouble,
    )
