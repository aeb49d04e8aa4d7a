"""The CSI driver of a node as kubelet calls it: over its socket, with real mounts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support.apiserver import ApiServer
from tests.support.waiting import eventually

from lockstep.api.core import VOLUMES
from lockstep.api.dataset_cache import (
    DRIVER,
    DatasetCache,
    DatasetCacheSpec,
    DatasetCacheStatus,
    cache_name,
)
from lockstep.api.meta import ObjectMeta
from lockstep.data.csi.asked import EPHEMERAL, POD_NAMESPACE
from lockstep.data.csi.mounts import hide
from lockstep.data.csi.node import NodeDriver
from lockstep.data.csi.wire import csi_pb2 as wire
from lockstep.devices.kubelet.wire import pluginregistration_pb2 as registration
from lockstep.kube.client import Client

NODE = "n1"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root")


@dataclass
class Kubelet:
    """What kubelet does of a driver: it finds the driver's socket and calls it."""

    root: Path
    caches: dict[tuple[str, str], DatasetCache] = field(default_factory=dict)

    @property
    def target(self) -> Path:
        return self.root / "pods/uid/volumes/kubernetes.io~csi/data/mount"

    def keep(self, dataset: str, files: Path, **status: Any) -> None:
        name = cache_name(dataset, NODE)
        given = {"version": "v1", "path": str(files), "bound": True, **status}
        self.caches["ann", name] = DatasetCache(
            metadata=ObjectMeta(name=name, namespace="ann"),
            spec=DatasetCacheSpec(NODE, dataset, version="v1"),
            status=DatasetCacheStatus(**given),
        )

    async def socket(self) -> Path:
        place = self.root / "plugins_registry" / f"{DRIVER}-reg.sock"
        await eventually(place.exists)
        info = await _call(place, "pluginregistration.Registration/GetInfo",
                           registration.InfoRequest(), registration.PluginInfo)  # fmt: skip
        assert (info.type, info.name) == ("CSIPlugin", DRIVER)
        return Path(info.endpoint)

    async def publish(self, target: Path | None = None, **attributes: str) -> None:
        context = {POD_NAMESPACE: "ann", EPHEMERAL: "true", **attributes}
        request = wire.NodePublishVolumeRequest(
            volume_id="csi-1",
            target_path=str(target or self.target),
            volume_capability={"mount": {}, "access_mode": {"mode": 3}},
            volume_context=context,
        )
        where = await self.socket()
        await _call(where, "csi.v1.Node/NodePublishVolume", request, wire.NodePublishVolumeResponse)

    async def unpublish(self) -> None:
        request = wire.NodeUnpublishVolumeRequest(volume_id="csi-1", target_path=str(self.target))
        where = await self.socket()
        answer = wire.NodeUnpublishVolumeResponse
        await _call(where, "csi.v1.Node/NodeUnpublishVolume", request, answer)


async def _call(socket: Path, method: str, request: Any, answer: Any) -> Any:
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        call = channel.unary_unary(
            f"/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return await call(request)


@pytest.fixture
async def client(shared_server: ApiServer) -> AsyncIterator[Client]:
    async with shared_server.client() as found:
        yield found


@pytest.fixture
async def kubelet(client: Client) -> AsyncIterator[Kubelet]:
    """A kubelet whose driver knows the datasets that the test says this node keeps."""
    short = tempfile.TemporaryDirectory()  # the kernel takes 107 characters of a socket's path
    one = Kubelet(Path(short.name))
    driver = NodeDriver(
        client, NODE, lambda *key: one.caches.get(key), kubelet=one.root, patience=0.5
    )
    running = asyncio.create_task(driver.run())
    yield one
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    hide(one.target)
    short.cleanup()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    place = tmp_path / "files"
    (place / "train").mkdir(parents=True)
    (place / "train/1.txt").write_text("one")
    return place


async def volume(client: Client, name: str, **attributes: str) -> None:
    """Make the PersistentVolume that the controller makes for a Dataset of ann's."""
    shown = {"namespace": "ann", **attributes}
    body = {
        "metadata": {"name": f"ann-{name}"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Pi"},
            "claimRef": {"namespace": "ann", "name": name},
            "csi": {"driver": DRIVER, "volumeHandle": name, "volumeAttributes": shown},
        },
    }
    await client.create(VOLUMES, body)


async def test_a_volume_shows_the_files_and_takes_no_writes(kubelet: Kubelet, files: Path) -> None:
    kubelet.keep("d", files)
    for _ in range(2):  # kubelet asks again where it missed the answer
        await kubelet.publish(**{EPHEMERAL: "false", "namespace": "ann", "dataset": "d"})
    assert (kubelet.target / "train/1.txt").read_text() == "one"
    with pytest.raises(OSError) as refused:
        (kubelet.target / "new").write_text("x")
    assert refused.value.errno == errno.EROFS
    for _ in range(2):
        await kubelet.unpublish()
    assert not kubelet.target.exists()
    assert (files / "train/1.txt").exists()


async def test_a_pod_names_datasets_that_stand_for_others(
    kubelet: Kubelet, client: Client, files: Path
) -> None:
    kubelet.keep("owner", files)
    await volume(client, "view", dataset="owner", path="train")
    await kubelet.publish(dataset="view")
    assert (kubelet.target / "1.txt").read_text() == "one"
    await kubelet.unpublish()


@pytest.mark.parametrize(
    ("status", "attributes", "refusal"),
    [
        ({"bound": False}, {}, ("UNAVAILABLE", "being fetched")),
        (
            {"phase": "Failed", "bound": False, "reason": "SourceUnreachable"},
            {},
            ("UNAVAILABLE", "SourceUnreachable"),
        ),
        ({"version": "v0"}, {}, ("UNAVAILABLE", "being fetched")),
        ({}, {"path": "test"}, ("INVALID_ARGUMENT", "'test'")),
        ({}, {"dataset": "unknown"}, ("UNAVAILABLE", "not asked of this node")),
    ],
)
async def test_why_a_volume_is_not_mounted_is_said(
    kubelet: Kubelet, files: Path, status: Any, attributes: dict[str, str], refusal: tuple[str, str]
) -> None:
    kubelet.keep("d", files, **status)
    asked = {EPHEMERAL: "false", "namespace": "ann", "dataset": "d", **attributes}
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await kubelet.publish(**asked)
    assert refused.value.code().name == refusal[0]
    assert refusal[1] in str(refused.value.details())
    assert not kubelet.target.is_mount()


async def test_nothing_is_mounted_outside_of_pods(
    kubelet: Kubelet, files: Path, tmp_path: Path
) -> None:
    kubelet.keep("d", files)
    for target in (tmp_path / "elsewhere", kubelet.target / "../../../../../../../etc"):
        with pytest.raises(grpc.aio.AioRpcError, match="volumes of pods lie below"):
            await kubelet.publish(target, **{EPHEMERAL: "false", "dataset": "d"})


async def test_links_lead_out_of_no_dataset(kubelet: Kubelet, files: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (files / "out").symlink_to(tmp_path / "secret")
    kubelet.keep("d", files)
    with pytest.raises(grpc.aio.AioRpcError, match="no directory 'out'"):
        await kubelet.publish(**{EPHEMERAL: "false", "dataset": "d", "path": "out"})


async def test_a_volume_whose_files_went_is_taken_away(kubelet: Kubelet, files: Path) -> None:
    kubelet.keep("d", files)
    await kubelet.publish(**{EPHEMERAL: "false", "dataset": "d"})
    with contextlib.suppress(OSError):
        (files / "train/1.txt").unlink()
    await kubelet.unpublish()
    assert not kubelet.target.exists()
