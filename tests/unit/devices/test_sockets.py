"""Sockets of device plugins."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.devices.kubelet.plugin import LONGEST_SOCKET, socket_name

KUBELET = Path("/var/lib/kubelet/device-plugins")
LONG = "example.com/" + "a" * 63


@pytest.mark.parametrize(
    ("resource", "directory", "name"),
    [
        ("nvidia.com/gpu", KUBELET, "lockstep-nvidia.com_gpu.sock"),
        ("lockstep.dev/gpu-cards", KUBELET, "lockstep-lockstep.dev_gpu-cards.sock"),
        (LONG, KUBELET, None),
        ("lockstep.dev/gpu-cards", Path("/" + "d" * 80), None),
    ],
)
def test_a_socket_is_named_after_its_resource(
    resource: str, directory: Path, name: str | None
) -> None:
    found = socket_name(resource, directory)
    assert len(f"{directory}/{found}") <= LONGEST_SOCKET
    assert name in (None, found)


def test_long_names_stay_apart() -> None:
    assert socket_name(LONG + "b", KUBELET) != socket_name(LONG + "c", KUBELET)
