"""A process node for the tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.process_node import ProcessNode

from lockstep.kube.client import Client


@pytest.fixture(scope="module")
def node(
    shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProcessNode]:
    """A node of the file's own; it is stopped with its pods at the end."""
    running = ProcessNode(shared_server, tmp_path_factory.mktemp("node")).start()
    yield running
    running.stop()


@pytest.fixture
async def client(node: ProcessNode) -> AsyncIterator[Client]:
    """A client of the server that the node belongs to."""
    async with node.server.client() as found:
        yield found
