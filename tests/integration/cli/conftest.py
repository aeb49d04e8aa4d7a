"""A control plane for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.control_plane import ControlPlane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    running = ControlPlane(
        tmp_path_factory.mktemp("up") / "data",
        *("--simulate", "4x8,nodes-per-leaf=2,leaves-per-spine=1"),
    ).start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.stop()
