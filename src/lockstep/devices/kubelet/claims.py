"""What a kubelet asks of the driver: to prepare the devices of claims, and to take them back.

A claim that is prepared is a file of this node, written as a whole before kubelet hears of it. A
driver that was killed between any two steps is asked again, and does the same again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import grpc

from lockstep.api.claims import DRIVER, RESOURCE_CLAIMS, AllocatedDevice
from lockstep.devices.core import cdi
from lockstep.devices.core.model import Card
from lockstep.devices.core.slices import by_name
from lockstep.devices.kubelet.driver_sockets import DriverSockets, unary
from lockstep.devices.kubelet.files import replace_file
from lockstep.devices.kubelet.wire import dra_pb2 as wire
from lockstep.devices.watching import Watch
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError

log = logging.getLogger(__name__)

SERVICE: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
VERSION: Final = "v1.DRAPlugin"
CDI: Final = Path("/var/run/cdi")
"""Where container runtimes look for specifications that come and go."""

Holders = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns by card (UUID) the pod that has it through the device plugin."""


class Refused(Exception):
    """A claim cannot be prepared; the message says why."""


class Prepared:
    """The claims that are prepared on this node, as files: they outlive the driver."""

    def __init__(self, kubelet: Path) -> None:
        self.place = kubelet / "plugins" / DRIVER

    def cards(self) -> dict[str, str]:
        """Return by card (UUID) the claim that has it."""
        found: dict[str, str] = {}
        for file in self.place.glob("claims/*.json"):
            try:
                told = json.loads(file.read_text())
            except (OSError, ValueError):
                continue
            found |= dict.fromkeys(told["cards"], told["claim"])
        return found

    def keep(self, uid: str, claim: str, cards: list[str]) -> None:
        """Write down a claim."""
        whole = json.dumps({"claim": claim, "cards": cards})
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
        self.sockets = DriverSockets(
            kubelet,
            DRIVER,
            sort="DRAPlugin",
            versions=[VERSION],
            services={SERVICE: self._driver()},
            socket="dra.sock",
        )

    async def run(self) -> None:
        """Serve until cancelled; kubelet finds the sockets by itself, also after a restart."""
        await self.sockets.run()

    def _driver(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "NodePrepareResources": unary(self._prepare, wire.NodePrepareResourcesRequest),
            "NodeUnprepareResources": unary(self._unprepare, wire.NodeUnprepareResourcesRequest),
        }

    # --- what kubelet calls ---

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
                (self._cdi / cdi.file_name(claim.uid)).unlink(missing_ok=True)
                self.prepared.drop(claim.uid)
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
        spec = cdi.spec_of(claim.uid, given, lambda file: Path(file).exists())
        replace_file(self._cdi / cdi.file_name(claim.uid), json.dumps(spec))
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
