"""Fixtures of tests that need real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import existing_cluster
from tests.support.apiserver import ApiServer
from tests.support.existing_cluster import ExistingCluster
from tests.support.kube_apiserver import KubeApiServer
from tests.support.kube_cluster import KubeCluster

SIMULATED = "8x8,nodes-per-leaf=4,leaves-per-spine=2"


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


@pytest.fixture(scope="session")
def real_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubeApiServer]:
    """A real kube-apiserver for the whole run; whoever takes it empties it first."""
    if existing_cluster.ASKED_FOR:
        yield request.getfixturevalue("running_cluster")
        return
    running = KubeApiServer(tmp_path_factory.mktemp("kubernetes") / "cluster")
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    """A real control plane with kube-controller-manager; take `real_cluster` to have it empty."""
    data = tmp_path_factory.mktemp("kubernetes") / "cluster"
    if existing_cluster.ASKED_FOR:
        existing = ExistingCluster(data).start()
        yield existing
        existing.empty()
        return
    running = KubeCluster(data)
    try:
        yield running.start()
    finally:
        running.kill()


@pytest.fixture
def real_cluster(running_cluster: KubeCluster) -> KubeCluster:
    """A real control plane with kube-controller-manager, empty but for what it starts with."""
    running_cluster.empty()
    return running_cluster


@pytest.fixture
def simulated_cluster(real_cluster: KubeCluster) -> Iterator[KubeCluster]:
    """The same with 8 simulated nodes of 8 GPUs under two leaves."""
    with real_cluster.simulated_nodes(SIMULATED):
        yield real_cluster


@pytest.fixture(params=["embedded", "kube-apiserver"])
def any_server(request: pytest.FixtureRequest) -> ApiServer:
    """Each server in turn, empty but for what a cluster starts with."""
    return _server(request, "server")


@pytest.fixture(params=["embedded", "kube-apiserver"])
def any_shared_server(request: pytest.FixtureRequest) -> ApiServer:
    """Each server in turn, for all tests of a file, which keep apart by names and namespaces."""
    return _server(request, "shared_server")


def _server(request: pytest.FixtureRequest, embedded: str) -> ApiServer:
    if request.param == "embedded":
        chosen: ApiServer = request.getfixturevalue(embedded)
        return chosen
    real: KubeApiServer = request.getfixturevalue("real_server")
    real.empty()
    return real
