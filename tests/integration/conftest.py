"""Fixtures of tests that need real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apiserver import ApiServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    """An API server of the test's own, empty but for the default namespaces."""
    running = ApiServer(tmp_path / "cluster").start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server for all tests of a file, which keep apart by names and namespaces."""
    running = ApiServer(tmp_path_factory.mktemp("cluster")).start()
    yield running
    running.kill()
