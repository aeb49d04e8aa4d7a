"""What the device plugin answers: CDI devices where they are described, and files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.devices.core import cdi
from lockstep.devices.core.model import Card, Inventory

pytest.importorskip("grpc", reason="grpcio is not installed: pip install lockstep[agent]")

from lockstep.devices.kubelet.plugin import Plugin
from lockstep.devices.kubelet.wire import deviceplugin_pb2 as wire


class Watched:
    """Two cards with files of their own."""

    def __init__(self, directory: Path) -> None:
        files = [directory / f"card{index}" for index in range(2)]
        for file in files:
            file.touch()
        self.inventory = Inventory(
            cards=[
                Card(index=index, uuid=f"GPU-{index}", nodes=[str(file)])
                for index, file in enumerate(files)
            ]
        )

    def subscribe(self, listener: object) -> None:
        """Nothing changes here."""


async def answered(plugin: Plugin, *uuids: str) -> wire.ContainerAllocateResponse:
    asked = wire.AllocateRequest(
        container_requests=[wire.ContainerAllocateRequest(devices_ids=uuids)]
    )
    return (await plugin._allocate(asked, None)).container_responses[0]


async def none(*_: object) -> list[str]:
    return []


async def test_cards_are_named_as_cdi_devices_too(tmp_path: Path) -> None:
    cdi = tmp_path / "cdi"
    plugin = Plugin(Watched(tmp_path), "nvidia.com/gpu", tmp_path, none, cdi_directory=cdi)
    answer = await answered(plugin, "GPU-1")
    assert [one.name for one in answer.cdi_devices] == ["gpu.lockstep.dev/card=GPU-1"]
    assert [one.host_path for one in answer.devices] == [str(tmp_path / "card1")]
    (file,) = cdi.iterdir()
    spec = json.loads(file.read_text())
    assert (file.name, spec["kind"]) == ("gpu.lockstep.dev-cards.json", "gpu.lockstep.dev/card")
    nodes = {one["name"]: one["containerEdits"]["deviceNodes"] for one in spec["devices"]}
    assert nodes["GPU-1"][0] == {"path": str(tmp_path / "card1")}


async def test_without_a_place_for_the_specification_files_do(tmp_path: Path) -> None:
    (tmp_path / "cdi").touch()
    where = tmp_path / "cdi"
    plugin = Plugin(Watched(tmp_path), "nvidia.com/gpu", tmp_path, none, cdi_directory=where)
    answer = await answered(plugin, "GPU-0")
    assert not answer.cdi_devices
    assert [one.host_path for one in answer.devices] == [str(tmp_path / "card0")]


def test_devices_of_claims_begin_with_a_letter() -> None:
    # UIDs begin with any digit; CDI 0.3 refuses such a name, and the whole file with it.
    spec = cdi.spec_of("1ae599fe", {"gpu": [Card(index=0, nodes=["/dev/nvidia0"])]}, lambda _: True)
    (device,) = spec["devices"]
    assert device["name"][0].isalpha()
    assert cdi.device_of("1ae599fe", "gpu") == f"{cdi.KIND}={device['name']}"
