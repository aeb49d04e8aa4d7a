"""Stub GPUs for tests of the node agent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.stub_gpus import StubGpus, two


@pytest.fixture
def gpus(tmp_path: Path) -> StubGpus:
    """Two stub GPUs."""
    found = StubGpus(tmp_path / "gpus")
    found.update(two())
    return found
