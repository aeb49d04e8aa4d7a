"""The CSI driver of this node: mounts datasets into pods, as their claims or the pods name them.

A volume is a bind mount of the dataset's view, or of its files where all are on the node. It needs
nothing of this process any more once it is there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc

from lockstep import __version__
from lockstep.api.core import VOLUMES
from lockstep.api.dataset_cache import DRIVER, DatasetCache, cache_name, shown
from lockstep.data.csi import mounts
from lockstep.data.csi.asked import Asked, BadVolume, asked
from lockstep.data.csi.wire import csi_pb2 as wire
from lockstep.devices.kubelet.driver_sockets import DriverSockets, unary
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, NotFound

log = logging.getLogger(__name__)

VERSION: Final = "1.0.0"
"""Of the interface, as kubelet counts drivers' versions."""
PATIENCE: Final = 90.0
"""Seconds that kubelet is let wait for a dataset; it gives up after two minutes and asks again."""
_LOOK: Final = 0.1
Find = Callable[[str, str], DatasetCache | None]
"""Returns what this node keeps, by namespace and name."""


class NodeDriver:
    """Answers kubelet: identity and node service, without staging."""

    def __init__(
        self, client: Client, node: str, find: Find, *, kubelet: Path, patience: float = PATIENCE
    ) -> None:
        self._client, self._node, self._find, self._patience = client, node, find, patience
        self._pods = kubelet / "pods"
        self.sockets = DriverSockets(
            kubelet,
            DRIVER,
            sort="CSIPlugin",
            versions=[VERSION],
            services={"csi.v1.Identity": self._identity(), "csi.v1.Node": self._service()},
            socket="csi.sock",
        )

    async def run(self) -> None:
        """Serve until cancelled; kubelet finds the sockets by itself, also after a restart."""
        await self.sockets.run()

    def _identity(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "GetPluginInfo": unary(self._info, wire.GetPluginInfoRequest),
            "GetPluginCapabilities": unary(self._can, wire.GetPluginCapabilitiesRequest),
            "Probe": unary(self._probe, wire.ProbeRequest),
        }

    def _service(self) -> dict[str, grpc.RpcMethodHandler]:
        return {
            "NodeGetInfo": unary(self._about_node, wire.NodeGetInfoRequest),
            "NodeGetCapabilities": unary(self._node_can, wire.NodeGetCapabilitiesRequest),
            "NodePublishVolume": unary(self._publish, wire.NodePublishVolumeRequest),
            "NodeUnpublishVolume": unary(self._unpublish, wire.NodeUnpublishVolumeRequest),
        }

    # --- what kubelet calls ---

    async def _info(self, _: Any, __: Any) -> wire.GetPluginInfoResponse:
        return wire.GetPluginInfoResponse(name=DRIVER, vendor_version=__version__)

    async def _can(self, _: Any, __: Any) -> wire.GetPluginCapabilitiesResponse:
        return wire.GetPluginCapabilitiesResponse()

    async def _probe(self, _: Any, __: Any) -> wire.ProbeResponse:
        return wire.ProbeResponse()

    async def _about_node(self, _: Any, __: Any) -> wire.NodeGetInfoResponse:
        return wire.NodeGetInfoResponse(node_id=self._node)

    async def _node_can(self, _: Any, __: Any) -> wire.NodeGetCapabilitiesResponse:
        return wire.NodeGetCapabilitiesResponse()

    async def _publish(
        self, request: wire.NodePublishVolumeRequest, context: Any
    ) -> wire.NodePublishVolumeResponse:
        try:
            target = self._target(request.target_path)
            if request.volume_capability.HasField("block"):
                raise BadVolume("a dataset is a file system: volumeMode Filesystem")
            what = asked(request.volume_context)
            source = await self._patiently(await self._meant(what) if what.by_name else what)
            await asyncio.to_thread(mounts.show, source, target)
        except BadVolume as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except NotShown as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except (ApiError, OSError) as error:
            log.warning("volume %s: %s", request.volume_id, error)
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        return wire.NodePublishVolumeResponse()

    async def _unpublish(
        self, request: wire.NodeUnpublishVolumeRequest, context: Any
    ) -> wire.NodeUnpublishVolumeResponse:
        try:
            await asyncio.to_thread(mounts.hide, self._target(request.target_path))
        except BadVolume as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except OSError as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        return wire.NodeUnpublishVolumeResponse()

    # --- helpers ---

    def _target(self, path: str) -> Path:
        """Return where kubelet wants a volume, which is below its pods.

        Raises:
            BadVolume: when it is elsewhere.
        """
        target = Path(path)
        if ".." in target.parts or not target.is_relative_to(self._pods):
            raise BadVolume(f"target_path {path}: volumes of pods lie below {self._pods}")
        return target

    async def _meant(self, what: Asked) -> Asked:
        """Return the dataset that the one of the pod's namespace stands for: itself, or another.

        Its PersistentVolume says so, which the cluster's own controller makes.

        Raises:
            NotShown: when it has none yet.
        """
        try:
            volume = await self._client.get(VOLUMES, f"{what.namespace}-{what.dataset}")
        except NotFound:
            volume = None
        spec = volume.spec if volume is not None else {}
        claim, csi = spec.get("claimRef") or {}, spec.get("csi") or {}
        if csi.get("driver") != DRIVER or claim.get("namespace") != what.namespace:
            raise NotShown(f"there is no Dataset {what.dataset!r} in {what.namespace} (yet)")
        found = csi.get("volumeAttributes") or {}
        path = "/".join(one for one in (found.get("path", ""), what.path) if one)
        return Asked(found.get("namespace", ""), found.get("dataset", ""), path)

    async def _patiently(self, what: Asked) -> Path:
        """Return the directory of a dataset as soon as it can be read on this node.

        Raises:
            NotShown: when it does not come in time.
            BadVolume: when it has no such directory.
        """
        until = time.monotonic() + self._patience
        while True:
            found = self._find(what.namespace, cache_name(what.dataset, self._node))
            place, why_not = shown(found) if found is not None else ("", _unasked(what))
            if place:
                return _inside(Path(place), what)
            if time.monotonic() > until:
                raise NotShown(why_not)
            await asyncio.sleep(_LOOK)


class NotShown(Exception):
    """A dataset cannot be read on this node yet; the message says why."""


def _unasked(what: Asked) -> str:
    return (
        f"dataset {what.dataset!r} of {what.namespace} is not asked of this node yet: `kubectl "
        f"describe dataset -n {what.namespace} {what.dataset}` says whether it is bound"
    )


def _inside(root: Path, what: Asked) -> Path:
    place = root / what.path
    if not place.resolve().is_relative_to(root.resolve()) or not place.is_dir():
        raise BadVolume(f"dataset {what.dataset!r} has no directory {what.path!r}")
    return place
