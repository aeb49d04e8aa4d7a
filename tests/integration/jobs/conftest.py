"""A small cluster for the tests of a file: server, controllers, scheduler, process node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support.apiserver import ApiServer
from tests.support.kube_cluster import KubeCluster
from tests.support.process_node import ProcessNode
from tests.support.scheduler import PartProcess
from tests.support.training import Cluster


@pytest.fixture(scope="module", params=["embedded", "kubernetes"])
def jobs_server(request: pytest.FixtureRequest) -> ApiServer:
    """The embedded server and a real control plane in turn."""
    if request.param == "embedded":
        embedded: ApiServer = request.getfixturevalue("shared_server")
        return embedded
    real: KubeCluster = request.getfixturevalue("running_cluster")
    real.empty()
    return real


@pytest.fixture(scope="module")
def controllers(jobs_server: ApiServer) -> Iterator[PartProcess]:
    """The job controllers, with the rights that they are given."""
    config = jobs_server.data / "kubeconfigs" / "controllers.kubeconfig"
    running = PartProcess(config, part="controllers").start()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def node(
    jobs_server: ApiServer,
    controllers: PartProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ProcessNode]:
    """This machine as a node, and the scheduler that places pods on it."""
    config = jobs_server.data / "kubeconfigs" / "scheduler.kubeconfig"
    scheduler = PartProcess(config).start()
    running = ProcessNode(jobs_server, tmp_path_factory.mktemp("node")).start()
    yield running
    running.stop()
    scheduler.kill()


@pytest.fixture
async def cluster(node: ProcessNode, controllers: PartProcess) -> AsyncIterator[Cluster]:
    """The cluster, with a client of its own for each test."""
    async with node.server.client() as client:
        yield Cluster(node, controllers, client)
