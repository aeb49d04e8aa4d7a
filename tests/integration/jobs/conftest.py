"""A small cluster for the tests of a file: server, controllers, scheduler, process node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.process_node import ProcessNode
from tests.support.scheduler import PartProcess
from tests.support.training import Cluster


@pytest.fixture(scope="module")
def controllers(shared_server: ApiServer) -> Iterator[PartProcess]:
    """The job controllers."""
    running = PartProcess(shared_server.kubeconfig, part="controllers").start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def node(
    shared_server: ApiServer,
    controllers: PartProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ProcessNode]:
    """This machine as a node, and the scheduler that places pods on it."""
    scheduler = PartProcess(shared_server.kubeconfig).start()
    running = ProcessNode(shared_server, tmp_path_factory.mktemp("node")).start()
    yield running
    running.stop()
    scheduler.kill()


@pytest.fixture
async def cluster(node: ProcessNode, controllers: PartProcess) -> AsyncIterator[Cluster]:
    """The cluster, with a client of its own for each test."""
    async with node.server.client() as client:
        yield Cluster(node, controllers, client)
